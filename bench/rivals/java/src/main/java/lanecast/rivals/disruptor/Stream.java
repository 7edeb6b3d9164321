package lanecast.rivals.disruptor;

import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import com.lmax.disruptor.util.DaemonThreadFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import lanecast.rivals.Clock;
import lanecast.rivals.Placement;

/**
 * One producer, consumers side by side or the last after the others, flat out.
 *
 * <p>Passes before the measured one let the compiler see the loops: it replaces a running loop only
 * where that loop is entered again.
 */
final class Stream {
  private static final int WARMUP_PASSES = 3;
  private static final long WARMUP_MESSAGES = 3_000_000;

  private final Work work;
  private final List<Seen> consumers = new ArrayList<>();
  private final RingBuffer<Value> ring;
  private long next;

  private Stream(final Work work) {
    this.work = work;
    final Disruptor<Value> disruptor =
        new Disruptor<>(
            Value::new,
            Work.CAPACITY,
            DaemonThreadFactory.INSTANCE,
            ProducerType.SINGLE,
            work.waitStrategy());
    for (int index = 0; index < work.consumers(); index++) {
      consumers.add(new Seen(work.consumerCpu()));
    }
    if (work.isDiamond()) {
      final Seen last = consumers.get(work.consumers() - 1);
      disruptor
          .handleEventsWith(consumers.subList(0, work.consumers() - 1).toArray(new Seen[0]))
          .then(last);
    } else {
      disruptor.handleEventsWith(consumers.toArray(new Seen[0]));
    }
    ring = disruptor.start();
  }

  static String measure(final Work work) throws Exception {
    final Stream stream = new Stream(work);
    Placement.pin(work.producerCpu());
    final long warmup = Math.min(WARMUP_MESSAGES, work.messages());
    for (int pass = 0; pass < WARMUP_PASSES; pass++) {
      stream.pass(warmup);
    }
    return stream.pass(work.messages());
  }

  /** Sends so many messages, waits until every consumer has seen them, and tells how it went. */
  private String pass(final long messages) throws InterruptedException {
    final long last = next + messages - 1;
    final List<Seen.Pass> passes = new ArrayList<>();
    for (final Seen consumer : consumers) {
      passes.add(consumer.expect(last));
    }
    final long startNs = System.nanoTime();
    if (work.batch() == 1) {
      publishEach(next, messages);
    } else {
      publishBatches(next, messages, work.batch());
    }
    next += messages;
    long endNs = startNs + 1;
    long damaged = 0;
    for (final Seen.Pass pass : passes) {
      pass.await();
      endNs = Math.max(endNs, pass.endNs());
      damaged += pass.misplaced();
    }
    return line(messages, damaged, endNs - startNs);
  }

  private void publishEach(final long first, final long messages) {
    for (long number = first; number < first + messages; number++) {
      publishOne(ring, number);
    }
  }

  private static void publishOne(final RingBuffer<Value> ring, final long number) {
    final long sequence = ring.next();
    ring.get(sequence).number = number;
    ring.publish(sequence);
  }

  private void publishBatches(final long first, final long messages, final int batch) {
    final long end = first + messages;
    for (long number = first; number < end; number += batch) {
      publishBatch(ring, number, (int) Math.min(batch, end - number));
    }
  }

  /** A method of its own: inside the loop the compiled code was three times slower. */
  private static void publishBatch(
      final RingBuffer<Value> ring, final long first, final int count) {
    final long high = ring.next(count);
    final long low = high - count + 1;
    for (int index = 0; index < count; index++) {
      ring.get(low + index).number = first + index;
    }
    ring.publish(low, high);
  }

  private String line(final long messages, final long damaged, final long durationNs) {
    return String.format(
        Locale.ROOT,
        "received=%d, lost=0, damaged=%d, duration_ns=%d, rate=%.0f, warmup_lost=0, "
            + "clock=%s, clock_cost_ns=%.1f, way=%s, ",
        messages,
        damaged,
        durationNs,
        messages * 1e9 / durationNs,
        Clock.NAME,
        Clock.costNs(),
        work.way());
  }
}
