package lanecast.rivals.jgroups;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;
import org.jgroups.util.MessageBatch;

/**
 * One member of a group: waits for all members, sends to all, counts what comes, its own messages
 * too. Prints lines of words: {@code started}, {@code view}, {@code result} or {@code rounds};
 * stays until it is killed, so that others can fetch what they miss.
 *
 * <p>A message: kind (8 bits), 3 bytes of nothing, sender (32), sequence (64), number (64: of the
 * messages sent, in an end), little endian, and content.
 */
public final class Member implements Receiver {
  private static final int HEADER_BYTES = 24;
  private static final byte START = 1;
  private static final byte DATA = 2;
  private static final byte END = 3;
  private static final byte PING = 4;
  private static final byte PONG = 5;
  private static final long START_INTERVAL_NS = 500_000_000;
  private static final int WARM_UP_ROUNDS = 20_000;

  private final Load load;
  private final Reception reception;
  private final JChannel channel;
  private final Thread main = Thread.currentThread();
  private final OperatingSystemMXBean system =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private final boolean[] started;
  private volatile boolean[] present;
  private volatile View view;
  private volatile long answered = -1;
  private long sent;

  private Member(final Load load) throws Exception {
    this.load = load;
    reception = new Reception(load.members);
    started = new boolean[load.members];
    present = new boolean[load.members];
    channel = new JChannel(load.stack).name("m" + load.index).setReceiver(this);
  }

  /**
   * Runs a member.
   *
   * @param arguments the options of {@link Load}
   * @throws Exception when the channel cannot be opened
   */
  public static void main(final String[] arguments) throws Exception {
    new Member(new Load(arguments)).run();
  }

  private void run() throws Exception {
    channel.connect("rivals");
    waitForAll();
    if (load.rounds > 0) {
      goRound();
    } else {
      measure();
    }
    System.out.flush();
    while (true) {
      LockSupport.parkNanos(1_000_000_000L);
    }
  }

  /** Says that it is there until all have said it. */
  private void waitForAll() throws Exception {
    long due = System.nanoTime();
    while (!hasStarted()) {
      final View now = view;
      if (now != null && now.size() >= load.members && System.nanoTime() - due >= 0) {
        channel.send(new BytesMessage(null, message(START, HEADER_BYTES, 0, 0)));
        due = System.nanoTime() + START_INTERVAL_NS;
      }
      LockSupport.parkNanos(1_000_000);
    }
    System.out.printf("started at=%d%n", System.nanoTime());
    System.out.flush();
  }

  private void measure() throws Exception {
    final long begun = System.nanoTime();
    final long cpu = system.getProcessCpuTime();
    while (load.messages > 0
        ? sent < load.messages
        : (sent & 63) != 0 || System.nanoTime() - begun < load.sendNs) {
      if (load.rate > 0) {
        final long due = begun + sent * 1_000_000_000L / load.rate;
        while (System.nanoTime() < due) {
          LockSupport.parkNanos(due - System.nanoTime());
        }
      }
      channel.send(new BytesMessage(null, message(DATA, load.size, sent, 0)));
      sent++;
      if (System.nanoTime() - begun > load.limitNs) {
        break;
      }
    }
    channel.send(new BytesMessage(null, message(END, HEADER_BYTES, 0, sent)));
    while (!reception.isWhole(present) && System.nanoTime() - begun < load.limitNs) {
      LockSupport.parkNanos(1_000_000);
    }
    final long used = system.getProcessCpuTime() - cpu;
    final int complete = reception.isWhole(present) ? 1 : 0;
    System.out.printf(
        "result sent=%d cpu=%d complete=%d %s%n", sent, used, complete, reception.words());
  }

  /** Sends to the second member and waits for the answer, again and again; the second answers. */
  private void goRound() throws Exception {
    if (load.index != 0) {
      return;
    }
    final Address other = view.getMembers().stream()
        .filter(address -> !address.equals(channel.getAddress())).findFirst().orElseThrow();
    final long[] times = new long[load.rounds];
    for (int round = 0; round < WARM_UP_ROUNDS + load.rounds; round++) {
      final long begun = System.nanoTime();
      channel.send(new BytesMessage(other, message(PING, load.size, round, 0)));
      while (answered != round) {
        LockSupport.park();
      }
      if (round >= WARM_UP_ROUNDS) {
        times[round - WARM_UP_ROUNDS] = System.nanoTime() - begun;
      }
    }
    Arrays.sort(times);
    System.out.printf(
        "rounds count=%d min=%d p50=%d p90=%d p99=%d%n", load.rounds, times[0],
        times[load.rounds / 2], times[load.rounds * 9 / 10], times[load.rounds * 99 / 100]);
  }

  private byte[] message(final byte kind, final int size, final long sequence, final long number) {
    final byte[] bytes = new byte[Math.max(size, HEADER_BYTES)];
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
        .put(0, kind).putInt(4, load.index).putLong(8, sequence).putLong(16, number);
    return bytes;
  }

  private boolean hasStarted() {
    synchronized (started) {
      for (final boolean one : started) {
        if (!one) {
          return false;
        }
      }
      return true;
    }
  }

  @Override
  public void viewAccepted(final View now) {
    final long at = System.nanoTime();
    final boolean[] here = new boolean[load.members];
    for (final Address address : now.getMembers()) {
      final int index = Integer.parseInt(address.toString().substring(1));
      here[index] = true;
    }
    view = now;
    present = here;
    System.out.printf("view at=%d members=%d%n", at, now.size());
    System.out.flush();
  }

  @Override
  public void receive(final Message message) {
    reception.add(take(message));
  }

  @Override
  public void receive(final MessageBatch batch) {
    int count = 0;
    for (final Message message : batch) {
      count += take(message);
    }
    reception.add(count);
  }

  /** Takes one message; 1 if it is counted. */
  private int take(final Message message) {
    final ByteBuffer bytes =
        ByteBuffer.wrap(message.getArray(), message.getOffset(), message.getLength())
            .slice().order(ByteOrder.LITTLE_ENDIAN);
    final int from = bytes.getInt(4);
    switch (bytes.get(0)) {
      case START:
        synchronized (started) {
          started[from] = true;
        }
        return 0;
      case DATA:
        if (bytes.getLong(8) == 0) {
          synchronized (started) {
            started[from] = true;
          }
        }
        reception.take(from, bytes.getLong(8));
        return 1;
      case END:
        reception.end(from, bytes.getLong(16));
        return 0;
      case PING:
        answer(message, bytes.getLong(8));
        return 0;
      case PONG:
        answered = bytes.getLong(8);
        LockSupport.unpark(main);
        return 0;
      default:
        throw new IllegalStateException("kind " + bytes.get(0));
    }
  }

  private void answer(final Message message, final long round) {
    try {
      channel.send(new BytesMessage(message.getSrc(), message(PONG, load.size, round, 0)));
    } catch (final Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
