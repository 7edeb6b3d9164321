package lanecast.rivals.jgroups;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts what a member receives. Messages of one sender come one after the other, those of different
 * senders at the same time on several threads.
 */
final class Reception {
  /** Between two samples of the count. */
  private static final long SAMPLE_NS = 20_000_000;

  /** Counts of one sender; fields between them, so that threads do not share cache lines. */
  private static final class Sender {
    long next;
    long duplicated;
    long disordered;
    volatile long received;
    volatile long sent = -1;
    long p0, p1, p2, p3, p4, p5, p6;
  }

  private final Sender[] senders;
  private final AtomicLong received = new AtomicLong();
  private final AtomicLong firstAt = new AtomicLong();
  private volatile long lastAt;
  private volatile long longestPause;
  private final List<long[]> samples = new ArrayList<>();
  private long sampledAt;

  Reception(final int members) {
    senders = new Sender[members];
    for (int i = 0; i < members; i++) {
      senders[i] = new Sender();
    }
  }

  void take(final int from, final long sequence) {
    final Sender sender = senders[from];
    if (sequence == sender.next) {
      sender.next++;
    } else if (sequence > sender.next) {
      sender.disordered++;
      sender.next = sequence + 1;
    } else {
      sender.duplicated++;
      return;
    }
    sender.received = sender.received + 1;
  }

  /** Adds messages that were taken, at the end of a batch. */
  void add(final int count) {
    if (count == 0) {
      return;
    }
    final long now = System.nanoTime();
    firstAt.compareAndSet(0, now);
    final long before = lastAt;
    if (before != 0 && now - before > longestPause) {
      longestPause = now - before;
    }
    lastAt = now;
    final long total = received.addAndGet(count);
    if (now - sampledAt > SAMPLE_NS) {
      synchronized (samples) {
        sampledAt = now;
        samples.add(new long[] {now, total});
      }
    }
  }

  void end(final int from, final long sent) {
    senders[from].sent = sent;
  }

  /** Whether all messages of these senders are there. */
  boolean isWhole(final boolean[] present) {
    for (int i = 0; i < senders.length; i++) {
      final Sender sender = senders[i];
      if (present[i] && (sender.sent < 0 || sender.received < sender.sent)) {
        return false;
      }
    }
    return true;
  }

  /** Time since the last message. */
  long quietNs() {
    return lastAt == 0 ? 0 : System.nanoTime() - lastAt;
  }

  long firstAt() {
    return firstAt.get();
  }

  /** The counts as words of the result line. */
  String words() {
    final long first = firstAt.get();
    final long total = received.get();
    long duplicated = 0;
    long disordered = 0;
    final StringBuilder by = new StringBuilder();
    for (final Sender sender : senders) {
      duplicated += sender.duplicated;
      disordered += sender.disordered;
      by.append(by.length() == 0 ? "" : ",").append(sender.received);
    }
    return String.format(
        "received=%d elapsed=%d steady=%.0f duplicated=%d disordered=%d pause=%d by=%s",
        total, lastAt - first, steady(first, total), duplicated, disordered, longestPause, by);
  }

  /** Messages a second in the second half of the time. */
  private double steady(final long first, final long total) {
    final long middle = first + (lastAt - first) / 2;
    synchronized (samples) {
      for (final long[] sample : samples) {
        if (sample[0] >= middle && lastAt > sample[0]) {
          return (total - sample[1]) * 1e9 / (lastAt - sample[0]);
        }
      }
    }
    return 0;
  }
}
