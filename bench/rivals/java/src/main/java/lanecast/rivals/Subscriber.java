package lanecast.rivals;

import io.aeron.Aeron;
import io.aeron.Subscription;
import java.util.concurrent.TimeUnit;

/** Reads a load through a subscription and tells what arrived. */
public final class Subscriber {
  private static final long FIRST_LIMIT_NS = TimeUnit.SECONDS.toNanos(30);
  private static final long SILENCE_LIMIT_NS = TimeUnit.SECONDS.toNanos(3);
  private static final int POLLS_PER_LOOK = 4096;
  private static final int SPINS_BEFORE_YIELD = 20;
  private static final int FRAGMENT_LIMIT = 256;

  private Subscriber() {}

  /**
   * Reads and prints one result line.
   *
   * @param arguments the options of {@link Load}
   * @throws Exception when the CPU cannot be used or the driver is not there
   */
  public static void main(final String[] arguments) throws Exception {
    final Load load = Load.parse(arguments);
    final Tally tally = new Tally(load);
    try (Aeron aeron = Streams.connect(load);
        Subscription subscription = aeron.addSubscription(Streams.CHANNEL, load.stream())) {
      Placement.pin(load.cpu());
      System.err.println("ready");
      drain(subscription, tally, load.yield());
    }
    System.out.println(tally.line());
  }

  private static void drain(
      final Subscription subscription, final Tally tally, final boolean yield) {
    long empty = 0;
    long seen = 0;
    long heardNs = System.nanoTime();
    while (!tally.isComplete()) {
      if (subscription.poll(tally, FRAGMENT_LIMIT) > 0) {
        empty = 0;
        continue;
      }
      empty++;
      if (empty % POLLS_PER_LOOK == 0) {
        final long now = System.nanoTime();
        if (tally.expected() != seen) {
          seen = tally.expected();
          heardNs = now;
        }
        if (now - heardNs > (tally.hasBegun() ? SILENCE_LIMIT_NS : FIRST_LIMIT_NS)) {
          tally.giveUp(heardNs);
          return;
        }
      }
      if (yield && empty > SPINS_BEFORE_YIELD) {
        Thread.yield();
      } else {
        Thread.onSpinWait();
      }
    }
  }
}
