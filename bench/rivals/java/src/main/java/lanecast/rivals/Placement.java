package lanecast.rivals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Pins the calling thread, and it alone: the compiler's and the collector's threads stay free to
 * run elsewhere, so that they do not take turns with the measured one.
 */
public final class Placement {
  private static final Path THIS_THREAD = Path.of("/proc/thread-self");

  private Placement() {}

  public static void pin(final int cpu) throws IOException, InterruptedException {
    if (cpu < 0) {
      throw new IllegalArgumentException("--cpu is needed");
    }
    final String thread = Files.readSymbolicLink(THIS_THREAD).getFileName().toString();
    final Process taskset =
        new ProcessBuilder("taskset", "-pc", Integer.toString(cpu), thread)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    if (taskset.waitFor() != 0) {
      throw new IOException("cannot pin to CPU " + cpu);
    }
  }
}
