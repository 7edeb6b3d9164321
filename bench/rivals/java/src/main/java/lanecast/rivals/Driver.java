package lanecast.rivals;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.ShutdownSignalBarrier;

/**
 * The media driver in a process of its own. Ends at SIGTERM and takes its directory with it.
 *
 * <p>One thread that backs off: it shares a CPU with a measured thread, and one that never parks
 * took three quarters of the rate away.
 */
public final class Driver {
  private static final long SPINS = 10;
  private static final long YIELDS = 20;
  private static final long SHORTEST_PARK_NS = TimeUnit.MICROSECONDS.toNanos(1);
  private static final long LONGEST_PARK_NS = TimeUnit.MICROSECONDS.toNanos(100);

  private Driver() {}

  /**
   * Runs until told to end.
   *
   * @param arguments {@code --domain NAME}
   */
  public static void main(final String[] arguments) {
    final Load load = Load.parse(arguments);
    final MediaDriver.Context context =
        new MediaDriver.Context()
            .aeronDirectoryName(load.directory())
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true)
            .termBufferSparseFile(false)
            .threadingMode(ThreadingMode.SHARED)
            .sharedIdleStrategy(
                new BackoffIdleStrategy(SPINS, YIELDS, SHORTEST_PARK_NS, LONGEST_PARK_NS));
    try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
        MediaDriver driver = MediaDriver.launch(context)) {
      System.err.println("ready");
      barrier.await();
    }
  }
}
