package lanecast.rivals;

import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.HdrHistogram.Histogram;
import org.agrona.DirectBuffer;

/** What a subscriber has seen: every sequence number is checked, every stamp recorded. */
final class Tally implements FragmentHandler {
  private static final long LONGEST_NS = 120_000_000_000L;
  private static final int SIGNIFICANT_DIGITS = 3;

  private final Histogram actual = new Histogram(LONGEST_NS, SIGNIFICANT_DIGITS);
  private final Histogram intended = new Histogram(LONGEST_NS, SIGNIFICANT_DIGITS);
  private final long messages;
  private final int bodyOffset;
  private final boolean stamped;
  private final boolean whole;

  private boolean measuring;
  private long expected = Message.WARMUP;
  private long received;
  private long lost;
  private long lostInWarmup;
  private long damaged;
  private long firstNs;
  private long lastNs;

  Tally(final Load load) {
    messages = load.messages();
    bodyOffset = load.bodyOffset();
    stamped = load.latency();
    whole = load.whole();
  }

  @Override
  public void onFragment(
      final DirectBuffer buffer, final int offset, final int length, final Header header) {
    final long sequence = buffer.getLong(offset);
    if (sequence != expected) {
      resumeAt(sequence);
    }
    expected = sequence + 1;
    received++;
    if (stamped) {
      final long now = System.nanoTime();
      record(actual, now - buffer.getLong(offset + Message.SENT));
      record(intended, now - buffer.getLong(offset + Message.DUE));
    }
    if (whole && !Message.bodyIsWhole(buffer, offset + bodyOffset, offset + length, sequence)) {
      damaged++;
    }
    if (received + lost == messages && measuring) {
      lastNs = System.nanoTime();
    }
  }

  boolean isComplete() {
    return measuring && received + lost >= messages;
  }

  boolean hasBegun() {
    return expected != Message.WARMUP;
  }

  long expected() {
    return expected;
  }

  /** Ends a stream that has been silent since then: what has not arrived is lost. */
  void giveUp(final long silentSinceNs) {
    received = measuring ? received : 0;
    lost = messages - received;
    lastNs = silentSinceNs;
  }

  String line() {
    final long durationNs = Math.max(1, lastNs - firstNs);
    final StringBuilder line = new StringBuilder();
    line.append(
        String.format(
            "received=%d, lost=%d, duration_ns=%d, rate=%.0f, ",
            received, lost, durationNs, Math.max(0, received - 1) * 1e9 / durationNs));
    if (stamped) {
      describe(line, "", actual);
      describe(line, "_intended", intended);
    }
    line.append(
        String.format(
            "damaged=%d, warmup_lost=%d, clock=%s, clock_cost_ns=%.1f, ",
            damaged, lostInWarmup, Clock.NAME, Clock.costNs()));
    return line.toString();
  }

  /** The sequence number is not the expected one: the measured part begins, or some are lost. */
  private void resumeAt(final long sequence) {
    if (sequence >= 0 && !measuring) {
      measuring = true;
      received = 0;
      damaged = 0;
      lost = sequence;
      actual.reset();
      intended.reset();
      firstNs = System.nanoTime();
      return;
    }
    final long missing = Math.max(0, sequence - expected);
    if (measuring) {
      lost += missing;
    } else {
      lostInWarmup += missing;
    }
  }

  private static void record(final Histogram histogram, final long ns) {
    histogram.recordValue(Math.min(LONGEST_NS, Math.max(0, ns)));
  }

  private static void describe(
      final StringBuilder line, final String infix, final Histogram histogram) {
    line.append(
        String.format(
            "p50%1$s_ns=%2$d, p90%1$s_ns=%3$d, p99%1$s_ns=%4$d, min%1$s_ns=%5$d, max%1$s_ns=%6$d, ",
            infix,
            histogram.getValueAtPercentile(50),
            histogram.getValueAtPercentile(90),
            histogram.getValueAtPercentile(99),
            histogram.getMinValue(),
            histogram.getMaxValue()));
  }
}
