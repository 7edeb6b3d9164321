package lanecast.rivals.disruptor;

import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;

/**
 * What is to be sent, read from the command line. Options and meaning are those of the program that
 * measures the queues in Rust.
 *
 * @param row kind of comparison
 * @param waiting how a consumer waits: {@code busy-spin}, {@code yield} or {@code block}
 * @param batch events that are published at once
 * @param consumers consuming threads
 * @param messages events of the measured part, or round trips
 * @param producerCpu CPU of the producer
 * @param consumerCpu CPU of every consumer
 */
record Work(
    String row,
    String waiting,
    int batch,
    int consumers,
    long messages,
    int producerCpu,
    int consumerCpu) {

  /** Events that a ring holds; as many as each queue in Rust. */
  static final int CAPACITY = 1 << 16;

  static Work parse(final String[] arguments) {
    String row = "queue";
    String waiting = "busy-spin";
    int batch = 1;
    int consumers = 1;
    long messages = 1_000_000;
    int producerCpu = 0;
    int consumerCpu = 1;
    for (int at = 0; at < arguments.length; at += 2) {
      final String option = arguments[at];
      if (at + 1 == arguments.length) {
        throw new IllegalArgumentException(option + " needs a value");
      }
      final String value = arguments[at + 1];
      switch (option) {
        case "--row" -> row = value;
        case "--wait" -> waiting = value;
        case "--batch" -> batch = Integer.parseInt(value);
        case "--consumers" -> consumers = Integer.parseInt(value);
        case "--messages" -> messages = Long.parseLong(value);
        case "--producer-cpu" -> producerCpu = Integer.parseInt(value);
        case "--consumer-cpu" -> consumerCpu = Integer.parseInt(value);
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    return new Work(row, waiting, batch, consumers, messages, producerCpu, consumerCpu);
  }

  boolean isRoundTrips() {
    return row.startsWith("pingpong");
  }

  boolean isDiamond() {
    return "diamond".equals(row);
  }

  /** Round trips that are timed together, where reading the clock would cost too much of one. */
  int group() {
    return "pingpong".equals(row) ? 64 : 1;
  }

  WaitStrategy waitStrategy() {
    return switch (waiting) {
      case "busy-spin" -> new BusySpinWaitStrategy();
      case "yield" -> new YieldingWaitStrategy();
      case "block" -> new BlockingWaitStrategy();
      default -> throw new IllegalArgumentException("--wait: busy-spin, yield or block");
    };
  }

  /** The way in which the library is used, for the result line. */
  String way() {
    return "next(" + batch + "); handlers; " + waiting;
  }
}
