package lanecast.rivals;

import java.nio.file.Path;

/**
 * The load of one measured run, read from the command line. Options and meaning are those of every
 * other measured program.
 *
 * @param cpu CPU that the measuring thread is pinned to
 * @param size bytes of one message, sequence number and stamps included
 * @param messages messages of the measured part
 * @param rate messages per second, 0 for flat out
 * @param topic topic both ends agree on
 * @param whole every byte is written and read, not the header only
 * @param latency every message is stamped and its latency recorded
 * @param yield an idle side gives its CPU away after 20 empty attempts
 * @param warmupMs milliseconds of unmeasured flat-out load
 * @param subscribers subscribers of the run
 * @param domain name of the shared-memory domain, one for each run
 */
record Load(
    int cpu,
    int size,
    long messages,
    long rate,
    String topic,
    boolean whole,
    boolean latency,
    boolean yield,
    long warmupMs,
    int subscribers,
    String domain) {

  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  static Load parse(final String[] arguments) {
    int cpu = -1;
    int size = 100;
    long messages = 1_000_000;
    long rate = 0;
    String topic = "rivals";
    boolean whole = false;
    boolean latency = false;
    boolean yield = false;
    long warmupMs = 2_000;
    int subscribers = 1;
    String domain = "rivals";
    for (int at = 0; at < arguments.length; at++) {
      final String option = arguments[at];
      if ("--latency".equals(option)) {
        latency = true;
        continue;
      }
      if (++at == arguments.length) {
        throw new IllegalArgumentException(option + " needs a value");
      }
      final String value = arguments[at];
      switch (option) {
        case "--cpu" -> cpu = Integer.parseInt(value);
        case "--size" -> size = Integer.parseInt(value);
        case "--messages" -> messages = Long.parseLong(value);
        case "--rate" -> rate = Long.parseLong(value);
        case "--topic" -> topic = value;
        case "--touch" -> whole = oneOf(option, value, "header", "whole") == 1;
        case "--wait" -> yield = oneOf(option, value, "spin", "yield") == 1;
        case "--warmup-ms" -> warmupMs = Long.parseLong(value);
        case "--subscribers" -> subscribers = Integer.parseInt(value);
        case "--domain" -> domain = value;
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    return new Load(
            cpu, size, messages, rate, topic, whole, latency, yield, warmupMs, subscribers, domain)
        .checked();
  }

  /** Directory that driver and clients share. */
  String directory() {
    return SHARED_MEMORY.resolve(domain).toString();
  }

  /** Stream both ends use: a topic is a name, a stream is a number. */
  int stream() {
    return topic.hashCode();
  }

  /** Offset of the body in a message. */
  int bodyOffset() {
    return Message.leastSize(latency);
  }

  private Load checked() {
    final int least = Message.leastSize(latency);
    if (size < least) {
      throw new IllegalArgumentException("--size must be at least " + least + " bytes here");
    }
    if (messages < 1) {
      throw new IllegalArgumentException("--messages must be at least 1");
    }
    return this;
  }

  private static int oneOf(final String option, final String value, final String... allowed) {
    for (int at = 0; at < allowed.length; at++) {
      if (allowed[at].equals(value)) {
        return at;
      }
    }
    throw new IllegalArgumentException(option + " must be one of " + String.join(", ", allowed));
  }
}
