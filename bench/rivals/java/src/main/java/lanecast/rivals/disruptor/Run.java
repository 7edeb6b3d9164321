package lanecast.rivals.disruptor;

/**
 * Measures LMAX Disruptor between threads of this process. Every consumer and the producer are
 * pinned; the compiler's and the collector's threads are free to run elsewhere.
 */
public final class Run {
  private Run() {}

  /**
   * Measures and prints one result line.
   *
   * @param arguments the options of {@link Work}
   * @throws Exception when a CPU cannot be used
   */
  public static void main(final String[] arguments) throws Exception {
    final Work work = Work.parse(arguments);
    System.out.println(work.isRoundTrips() ? Rounds.measure(work) : Stream.measure(work));
    // Handlers run on daemon threads; nothing is left to be done.
    System.exit(0);
  }
}
