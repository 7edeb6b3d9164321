package lanecast.rivals.jgroups;

/**
 * A histogram of times in nanoseconds, as exact as one in 128. The buckets are those of the other
 * sides' members, so that the runner can add the counts of all members up.
 */
final class Times {
  /** Times below 2^BITS * 2 have a bucket each; longer ones share 2^BITS buckets an octave. */
  private static final int BITS = 7;

  private final long[] counts = new long[64 << BITS];

  /** Counts one time. */
  void add(final long time) {
    counts[bucket(Math.max(time, 0))]++;
  }

  /** Adds the counts of another histogram. */
  void addAll(final Times other) {
    for (int i = 0; i < counts.length; i++) {
      counts[i] += other.counts[i];
    }
  }

  /** Buckets and counts, as the runner reads them. */
  String printed() {
    final StringBuilder text = new StringBuilder();
    for (int i = 0; i < counts.length; i++) {
      if (counts[i] > 0) {
        text.append(text.length() == 0 ? "" : ",").append(i).append(':').append(counts[i]);
      }
    }
    return text.toString();
  }

  private static int bucket(final long time) {
    final int shift = Math.max(0, 63 - Long.numberOfLeadingZeros(Math.max(time, 1)) - BITS);
    return (shift << BITS) + (int) (time >> shift);
  }
}
