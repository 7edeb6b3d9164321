package lanecast.rivals;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.logbuffer.BufferClaim;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.MutableDirectBuffer;

/** Publishes a load through an exclusive publication, in place, and tells what was sent. */
public final class Publisher {
  private static final long PEER_LIMIT_NS = TimeUnit.SECONDS.toNanos(20);
  private static final long SETTLE_NS = TimeUnit.MILLISECONDS.toNanos(30);
  private static final long PACED_WARMUP_NS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final int WARMUP_CHUNK = 4096;
  private static final int ATTEMPTS_BEFORE_YIELD = 20;

  private final Load load;
  private final ExclusivePublication publication;
  private final BufferClaim claim = new BufferClaim();
  private final int size;
  private final int bodyOffset;
  private final boolean stamped;
  private final boolean whole;

  private Publisher(final Load load, final ExclusivePublication publication) {
    this.load = load;
    this.publication = publication;
    this.size = load.size();
    this.bodyOffset = load.bodyOffset();
    this.stamped = load.latency();
    this.whole = load.whole();
  }

  /**
   * Publishes and prints one result line.
   *
   * @param arguments the options of {@link Load}
   * @throws Exception when the CPU cannot be used or the driver is not there
   */
  public static void main(final String[] arguments) throws Exception {
    final Load load = Load.parse(arguments);
    try (Aeron aeron = Streams.connect(load);
        ExclusivePublication publication =
            aeron.addExclusivePublication(Streams.CHANNEL, load.stream())) {
      Placement.pin(load.cpu());
      final Publisher publisher = new Publisher(load, publication);
      publisher.awaitConnected(true);
      publisher.run();
      publisher.awaitConnected(false);
    }
  }

  private void run() {
    warmUp();
    spin(SETTLE_NS);
    final long from = System.nanoTime();
    sendAll(0, load.messages(), load.rate());
    final long durationNs = System.nanoTime() - from;
    System.out.printf(
        "sent=%d, duration_ns=%d, rate=%.0f, clock=%s, clock_cost_ns=%.1f, %n",
        load.messages(),
        durationNs,
        load.messages() * 1e9 / durationNs,
        Clock.NAME,
        Clock.costNs());
  }

  /** Flat out, in chunks so that the measured loop itself is compiled; then at the asked rate. */
  private void warmUp() {
    final long from = System.nanoTime();
    final long limit = TimeUnit.MILLISECONDS.toNanos(load.warmupMs());
    long sequence = Message.WARMUP;
    while (System.nanoTime() - from < limit) {
      sendAll(sequence, WARMUP_CHUNK, 0);
      sequence += WARMUP_CHUNK;
    }
    if (load.rate() > 0) {
      spin(SETTLE_NS);
      sendAll(sequence, load.rate() * PACED_WARMUP_NS / 1_000_000_000, load.rate());
    }
  }

  private void sendAll(final long first, final long count, final long rate) {
    if (rate == 0) {
      for (long sequence = first; sequence < first + count; sequence++) {
        sendOne(sequence, 0);
      }
      return;
    }
    final double interval = 1e9 / rate;
    final long start = System.nanoTime();
    for (long index = 0; index < count; index++) {
      final long due = start + (long) (index * interval);
      while (System.nanoTime() < due) {
        // The next message is not due yet.
      }
      sendOne(first + index, due);
    }
  }

  private void sendOne(final long sequence, final long due) {
    claimRoom();
    final MutableDirectBuffer buffer = claim.buffer();
    final int offset = claim.offset();
    buffer.putLong(offset, sequence);
    if (stamped) {
      final long sent = System.nanoTime();
      buffer.putLong(offset + Message.SENT, sent);
      buffer.putLong(offset + Message.DUE, due == 0 ? sent : due);
    }
    if (whole) {
      Message.writeBody(buffer, offset + bodyOffset, offset + size, sequence);
    }
    claim.commit();
  }

  private void claimRoom() {
    int attempts = 0;
    long result;
    while ((result = publication.tryClaim(size, claim)) < 0) {
      if (result == Publication.CLOSED
          || result == Publication.NOT_CONNECTED
          || result == Publication.MAX_POSITION_EXCEEDED) {
        throw new IllegalStateException("the stream broke: " + Publication.errorString(result));
      }
      if (load.yield() && ++attempts > ATTEMPTS_BEFORE_YIELD) {
        Thread.yield();
      } else {
        Thread.onSpinWait();
      }
    }
  }

  private void awaitConnected(final boolean wanted) {
    final long from = System.nanoTime();
    while (publication.isConnected() != wanted) {
      if (System.nanoTime() - from > PEER_LIMIT_NS) {
        throw new IllegalStateException(wanted ? "no subscriber came" : "subscribers still there");
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
  }

  private static void spin(final long ns) {
    final long from = System.nanoTime();
    while (System.nanoTime() - from < ns) {
      Thread.onSpinWait();
    }
  }
}
