package lanecast.rivals.disruptor;

import com.lmax.disruptor.EventHandler;
import java.util.concurrent.CountDownLatch;
import lanecast.rivals.Placement;

/** One consumer: every number is checked, and the time of the last one taken. */
final class Seen implements EventHandler<Value> {
  private final int cpu;

  private long next;
  private volatile Pass pass;

  Seen(final int cpu) {
    this.cpu = cpu;
  }

  /** Numbers that are to be seen, and what came of them. */
  static final class Pass {
    private final long last;
    private final CountDownLatch complete = new CountDownLatch(1);
    private long misplaced;
    private long endNs;

    Pass(final long last) {
      this.last = last;
    }

    /** Waits for the last number. */
    void await() throws InterruptedException {
      complete.await();
    }

    /** Numbers that were not the next one. */
    long misplaced() {
      return misplaced;
    }

    /** When the last number was seen. */
    long endNs() {
      return endNs;
    }
  }

  /** Tells what the next events are; nothing may be under way. */
  Pass expect(final long last) {
    final Pass next = new Pass(last);
    pass = next;
    return next;
  }

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
    final long number = event.number;
    if (number != next) {
      pass.misplaced++;
    }
    next = number + 1;
    if (endOfBatch) {
      look(number);
    }
  }

  /** The last number of a pass always ends a batch: nothing is published behind it. */
  private void look(final long number) {
    final Pass now = pass;
    if (number == now.last) {
      now.endNs = System.nanoTime();
      now.complete.countDown();
    }
  }
}
