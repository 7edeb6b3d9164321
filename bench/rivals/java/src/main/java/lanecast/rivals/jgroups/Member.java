package lanecast.rivals.jgroups;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.locks.LockSupport;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;
import org.jgroups.util.MessageBatch;

/**
 * One member of a group: waits for all members, warms up, waits for a line of its input, sends to
 * all, counts what comes, its own messages too. Prints lines of words: {@code view}, {@code warm},
 * {@code started}, {@code times}, {@code result} or {@code rounds}; stays until it is killed, so that
 * others can fetch what they miss.
 *
 * <p>The main thread sends; JGroups' threads call {@link #receive(Message)}, {@link
 * #receive(MessageBatch)} and {@link #viewAccepted(View)}.
 *
 * <p>A message: kind (8 bits), 3 bytes of nothing, sender (32), sequence (64), stamp (64: the time at
 * which it was due; in an end the number of messages sent), little endian, and {@link Content}.
 */
public final class Member implements Receiver {
  private static final byte START = 1;
  private static final byte DATA = 2;
  private static final byte END = 3;
  private static final byte PING = 4;
  private static final byte PONG = 5;
  private static final byte WARM = 6;
  private static final byte READY = 7;
  private static final long START_INTERVAL_NS = 500_000_000;

  private final Load load;
  private final Content content;
  private final Reception reception;
  private final JChannel channel;
  private final Thread main = Thread.currentThread();
  private final OperatingSystemMXBean system =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  /** Addresses by number, as the members' own messages tell them. */
  private final Address[] addresses;
  private volatile boolean[] present;
  private volatile View view;
  private volatile long answered = -1;

  private Member(final Load load) throws Exception {
    this.load = load;
    content = new Content(load.whole);
    reception = new Reception(load, content);
    addresses = new Address[load.members];
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
    if (load.rounds == 0) {
      warmUp();
    } else if (load.index == 0) {
      goRound(load.warmRounds);
    }
    System.out.printf("warm at=%d%n", System.nanoTime());
    System.out.flush();
    waitForLine();
    System.out.printf("started at=%d%n", System.nanoTime());
    System.out.flush();
    if (load.rounds == 0) {
      measure();
    } else if (load.index == 0) {
      System.out.printf("times from=due counts=%s%n", goRound(load.rounds).printed());
      System.out.printf("rounds count=%d%n", load.rounds);
    }
    System.out.flush();
    while (true) {
      LockSupport.parkNanos(1_000_000_000L);
    }
  }

  /** Says that it is there until all have said it. */
  private void waitForAll() throws Exception {
    long due = System.nanoTime();
    while (!reception.haveStarted()) {
      final View now = view;
      if (now != null && now.size() >= load.members && System.nanoTime() - due >= 0) {
        send(START, 0, 0);
        due = System.nanoTime() + START_INTERVAL_NS;
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Sends flat out for the time of the warm-up, until all others have done so, too. */
  private void warmUp() throws Exception {
    final long begun = System.nanoTime();
    for (long sequence = 0; System.nanoTime() - begun < load.warmNs; sequence++) {
      send(WARM, sequence, 0);
    }
    send(READY, 0, 0);
    while (!reception.areWarm()) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Returns with the first line of the input, or with its end. */
  private static void waitForLine() throws Exception {
    int next;
    do {
      next = System.in.read();
    } while (next >= 0 && next != '\n');
  }

  private void measure() throws Exception {
    final long begun = System.nanoTime();
    final long cpu = system.getProcessCpuTime();
    long sent = 0;
    while (isSending(sent, System.nanoTime() - begun)) {
      // The time at which it is due, however late it goes: a sender that is held up must not hide
      // that.
      long stamp = 0;
      if (load.rate > 0) {
        stamp = begun + (sent + 1) * 1_000_000_000L / load.rate;
        while (System.nanoTime() - stamp < 0) {
          LockSupport.parkNanos(stamp - System.nanoTime());
        }
      }
      send(DATA, sent, stamp);
      sent++;
    }
    send(END, 0, sent);
    while (!reception.isWhole(present) && System.nanoTime() - begun < load.limitNs) {
      LockSupport.parkNanos(1_000_000);
    }
    final long used = system.getProcessCpuTime() - cpu;
    final int complete = reception.isWhole(present) ? 1 : 0;
    reception.printTimes();
    System.out.printf(
        "result sent=%d cpu=%d complete=%d %s%n", sent, used, complete, reception.words());
  }

  private boolean isSending(final long sent, final long elapsed) {
    if (elapsed > load.limitNs) {
      return false;
    }
    return load.messages > 0 ? sent < load.messages : elapsed < load.sendNs;
  }

  /** Sends to the second member and waits for the answer, again and again; the second answers. */
  private Times goRound(final int rounds) throws Exception {
    final Times times = new Times();
    final Address other = addresses[1];
    for (int round = 0; round < rounds; round++) {
      final long begun = System.nanoTime();
      answered = -1;
      channel.send(new BytesMessage(other, message(PING, load.size, round, 0)));
      while (answered != round) {
        LockSupport.park();
      }
      times.add(System.nanoTime() - begun);
    }
    return times;
  }

  /** Sends to all; data and warm-up with their content. */
  private void send(final byte kind, final long sequence, final long stamp) throws Exception {
    final boolean isLong = kind == DATA || kind == WARM;
    final int size = isLong ? load.size : Content.HEADER_BYTES;
    final byte[] bytes = message(kind, size, sequence, stamp);
    if (isLong) {
      final ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
      content.write(load.index, sequence, buffer);
      if (load.rate > 0) {
        buffer.putLong(Content.HEADER_BYTES, System.nanoTime());
      }
    }
    channel.send(new BytesMessage(null, bytes));
  }

  // A new array for each message: JGroups keeps it until all members have the message.
  private byte[] message(final byte kind, final int size, final long sequence, final long stamp) {
    final byte[] bytes = new byte[Math.max(size, Content.HEADER_BYTES)];
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
        .put(0, kind).putInt(4, load.index).putLong(8, sequence).putLong(16, stamp);
    return bytes;
  }

  /**
   * Notes the members of a view. By their addresses: the name of an address travels apart from the
   * view, and until it comes the address reads as a UUID.
   */
  @Override
  public void viewAccepted(final View now) {
    final long at = System.nanoTime();
    view = now;
    notePresent();
    System.out.printf("view at=%d members=%d%n", at, now.size());
    System.out.flush();
  }

  /** Which members are in the view; again whenever an address becomes known. */
  private void notePresent() {
    synchronized (addresses) {
      final View now = view;
      final boolean[] here = new boolean[load.members];
      for (int i = 0; i < here.length; i++) {
        here[i] = now != null && addresses[i] != null && now.containsMember(addresses[i]);
      }
      present = here;
    }
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
    final long sequence = bytes.getLong(8);
    switch (bytes.get(0)) {
      case START:
        synchronized (addresses) {
          addresses[from] = message.getSrc();
        }
        notePresent();
        reception.start(from);
        return 0;
      case DATA:
        return reception.take(from, sequence, bytes);
      case END:
        reception.end(from, bytes.getLong(16));
        return 0;
      case PING:
        answer(message, sequence);
        return 0;
      case PONG:
        answered = sequence;
        LockSupport.unpark(main);
        return 0;
      case WARM:
        return 0;
      case READY:
        reception.warm(from);
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
