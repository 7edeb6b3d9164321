package lanecast.rivals.jgroups;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Counts what a member receives, by the rules of the other sides' members: losses, repetitions,
 * order, content and times. JGroups delivers the messages of one sender one after the other, those
 * of different senders at the same time on several threads: counts of a sender need no lock, those
 * of all are changed once for each batch under one.
 */
final class Reception {
  /** Between two samples of the count. */
  private static final long SAMPLE_NS = 20_000_000;

  /** Counts of one sender; fields behind them, so that threads do not share cache lines. */
  private static final class Sender {
    long next;
    long duplicated;
    long disordered;
    long damaged;
    long digest;
    volatile long received;
    volatile long sent = -1;
    volatile boolean hasStarted;
    volatile boolean isWarm;
    final Times fromDue = new Times();
    final Times fromSent = new Times();
    long p0, p1, p2, p3, p4, p5, p6;
  }

  private final Sender[] senders;
  private final int mine;
  private final boolean takesTimes;
  private final Content content;
  private final List<long[]> samples = new ArrayList<>();
  private long received;
  private long firstAt;
  private long lastAt;
  private long longestPause;
  private long sampledAt;

  Reception(final Load load, final Content content) {
    senders = new Sender[load.members];
    for (int i = 0; i < load.members; i++) {
      senders[i] = new Sender();
    }
    mine = load.index;
    takesTimes = load.rate > 0;
    this.content = content;
  }

  /**
   * Takes a message that counts.
   *
   * @return 1, or 0 for one that had come before and does not count again
   */
  int take(final int from, final long sequence, final ByteBuffer message) {
    final Sender sender = senders[from];
    if (sequence < sender.next) {
      sender.duplicated++;
      return 0;
    }
    if (sequence > sender.next) {
      sender.disordered++;
    }
    if (!content.isIntact(from, sequence, message)) {
      sender.damaged++;
    }
    sender.digest = content.digest(sender.digest, sequence, message);
    sender.next = sequence + 1;
    if (takesTimes && from != mine) {
      final long now = System.nanoTime();
      sender.fromDue.add(now - message.getLong(16));
      sender.fromSent.add(now - message.getLong(Content.HEADER_BYTES));
    }
    // Last: isWhole reads it on another thread, and then everything before it.
    sender.received = sender.received + 1;
    return 1;
  }

  /** Adds messages that were taken, at the end of a batch. */
  synchronized void add(final int count) {
    if (count == 0) {
      return;
    }
    final long now = System.nanoTime();
    if (firstAt == 0) {
      firstAt = now;
    } else {
      longestPause = Math.max(longestPause, now - lastAt);
    }
    lastAt = now;
    received += count;
    if (now - sampledAt > SAMPLE_NS) {
      sampledAt = now;
      samples.add(new long[] {now, received});
    }
  }

  /** Notes that a member is here. */
  void start(final int from) {
    senders[from].hasStarted = true;
  }

  /** Whether all members are here. */
  boolean haveStarted() {
    for (final Sender sender : senders) {
      if (!sender.hasStarted) {
        return false;
      }
    }
    return true;
  }

  /** Notes that a member's warm-up is over. */
  void warm(final int from) {
    senders[from].isWarm = true;
  }

  /** Whether every member's warm-up is over. */
  boolean areWarm() {
    for (final Sender sender : senders) {
      if (!sender.isWarm) {
        return false;
      }
    }
    return true;
  }

  /** Notes how many messages a member has sent. */
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

  /** Prints the histograms, if times were taken. */
  void printTimes() {
    if (takesTimes) {
      final Times fromDue = new Times();
      final Times fromSent = new Times();
      for (final Sender sender : senders) {
        fromDue.addAll(sender.fromDue);
        fromSent.addAll(sender.fromSent);
      }
      System.out.printf("times from=due counts=%s%n", fromDue.printed());
      System.out.printf("times from=sent counts=%s%n", fromSent.printed());
    }
  }

  /** The counts as words of the result line. */
  synchronized String words() {
    long duplicated = 0;
    long disordered = 0;
    long damaged = 0;
    final List<String> by = new ArrayList<>();
    final List<String> digests = new ArrayList<>();
    for (final Sender sender : senders) {
      by.add(Long.toString(sender.received));
      digests.add(Long.toHexString(sender.digest));
      duplicated += sender.duplicated;
      disordered += sender.disordered;
      damaged += sender.damaged;
    }
    return String.format(
        "received=%d elapsed=%d steady=%.0f duplicated=%d disordered=%d damaged=%d pause=%d by=%s"
            + " digests=%s",
        received, lastAt - firstAt, steady(), duplicated, disordered, damaged, longestPause,
        String.join(",", by), String.join(",", digests));
  }

  /** Messages a second in the second half of the time. */
  private double steady() {
    final long middle = firstAt + (lastAt - firstAt) / 2;
    for (final long[] sample : samples) {
      if (sample[0] >= middle && lastAt > sample[0]) {
        return (received - sample[1]) * 1e9 / (lastAt - sample[0]);
      }
    }
    return 0;
  }
}
