package lanecast.rivals;

/** The clock of the stamps, and what reading it costs. */
public final class Clock {
  public static final String NAME = "nanoTime";
  private static final int READS = 200_000;
  private static final int ROUNDS = 5;

  private Clock() {}

  /** Nanoseconds of one read: the best mean of several rounds, the first of which warm up. */
  public static double costNs() {
    double best = Double.MAX_VALUE;
    long kept = 0;
    for (int round = 0; round < ROUNDS; round++) {
      final long from = System.nanoTime();
      for (int read = 0; read < READS; read++) {
        kept ^= System.nanoTime();
      }
      best = Math.min(best, (double) (System.nanoTime() - from) / READS);
    }
    // The reads must not be found useless and left out.
    return kept == 42 ? best + 1e-9 : best;
  }
}
