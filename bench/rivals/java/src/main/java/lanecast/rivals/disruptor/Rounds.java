package lanecast.rivals.disruptor;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import com.lmax.disruptor.util.DaemonThreadFactory;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import lanecast.rivals.Clock;
import lanecast.rivals.Placement;
import org.HdrHistogram.Histogram;

/**
 * Round trips over two rings: the answering end is a handler of the first ring that publishes into
 * the second, whose barrier the beginning end waits on.
 */
final class Rounds {
  private static final long LONGEST_NS = TimeUnit.MINUTES.toNanos(2);
  private static final int SIGNIFICANT_DIGITS = 3;
  private static final long WARMUP_ROUNDS = 300_000;
  private static final int WARMUP_PASSES = 3;

  private final Work work;
  private final RingBuffer<Value> there;
  private final RingBuffer<Value> back;
  private final SequenceBarrier answers;
  private final Sequence read = new Sequence();
  private long number;
  private long damaged;

  private Rounds(final Work work) {
    this.work = work;
    back = RingBuffer.createSingleProducer(Value::new, Work.CAPACITY, work.waitStrategy());
    answers = back.newBarrier();
    back.addGatingSequences(read);
    final Disruptor<Value> disruptor =
        new Disruptor<>(
            Value::new,
            Work.CAPACITY,
            DaemonThreadFactory.INSTANCE,
            ProducerType.SINGLE,
            work.waitStrategy());
    disruptor.handleEventsWith(new Answering(back, work.consumerCpu()));
    there = disruptor.start();
  }

  /** Sends back what comes. */
  private record Answering(RingBuffer<Value> back, int cpu) implements EventHandler<Value> {
    @Override
    public void onStart() {
      try {
        Placement.pin(cpu);
      } catch (final Exception error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void onEvent(final Value event, final long sequence, final boolean endOfBatch) {
      publish(back, event.number);
    }
  }

  static String measure(final Work work) throws Exception {
    final Rounds rounds = new Rounds(work);
    Placement.pin(work.producerCpu());
    // Round trips that sleep are slow enough for the compiler to be done after few.
    final long warmup = Math.min(WARMUP_ROUNDS, work.messages());
    for (int pass = 0; pass < WARMUP_PASSES; pass++) {
      rounds.pass(warmup);
    }
    return rounds.pass(work.messages());
  }

  private String pass(final long wanted) throws Exception {
    final int group = work.group();
    final long groups = (wanted + group - 1) / group;
    final Histogram times = new Histogram(LONGEST_NS, SIGNIFICANT_DIGITS);
    damaged = 0;
    final long startNs = System.nanoTime();
    long fromNs = startNs;
    for (long index = 0; index < groups; index++) {
      for (int trip = 0; trip < group; trip++) {
        call();
      }
      final long nowNs = System.nanoTime();
      times.recordValue(Math.min(LONGEST_NS, (nowNs - fromNs) / group));
      fromNs = nowNs;
    }
    return line(groups * group, Math.max(1, fromNs - startNs), times);
  }

  private void call() throws Exception {
    publish(there, ++number);
    final long sequence = read.get() + 1;
    answers.waitFor(sequence);
    if (back.get(sequence).number != number) {
      damaged++;
    }
    read.set(sequence);
  }

  private static void publish(final RingBuffer<Value> ring, final long number) {
    final long sequence = ring.next();
    ring.get(sequence).number = number;
    ring.publish(sequence);
  }

  private String line(final long rounds, final long durationNs, final Histogram times) {
    final StringBuilder line = new StringBuilder();
    line.append(
        String.format(
            Locale.ROOT,
            "received=%d, lost=0, damaged=%d, rate=%.0f, warmup_lost=0, samples=%d, ",
            rounds,
            damaged,
            rounds * 1e9 / durationNs,
            times.getTotalCount()));
    for (final String infix : new String[] {"", "_intended"}) {
      line.append(
          String.format(
              Locale.ROOT,
              "p50%1$s_ns=%2$d, p90%1$s_ns=%3$d, p99%1$s_ns=%4$d, min%1$s_ns=%5$d, "
                  + "max%1$s_ns=%6$d, ",
              infix,
              times.getValueAtPercentile(50),
              times.getValueAtPercentile(90),
              times.getValueAtPercentile(99),
              times.getMinValue(),
              times.getMaxValue()));
    }
    line.append(
        String.format(
            Locale.ROOT,
            "clock=%s, clock_cost_ns=%.1f, way=%s, ",
            Clock.NAME,
            Clock.costNs(),
            work.way()));
    return line.toString();
  }
}
