package lanecast.rivals;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * The bytes of one message, in the layout that all measured programs share: sequence number at 0,
 * stamp of the real send at 8, stamp of the intended send at 16, then the body; without stamps the
 * body begins at 8. A body that is written whole holds the low byte of the sequence number in every
 * byte. The byte order is the machine's, little-endian wherever this runs.
 */
final class Message {
  /** Marks the sequence numbers of the warm-up. */
  static final long WARMUP = Long.MIN_VALUE;

  static final int SENT = 8;
  static final int DUE = 16;
  private static final int STAMPED_BODY = 24;
  private static final long BYTES_OF_ONES = 0x0101_0101_0101_0101L;

  private Message() {}

  static int leastSize(final boolean stamped) {
    return stamped ? STAMPED_BODY : SENT;
  }

  static void writeBody(
      final MutableDirectBuffer buffer, final int from, final int end, final long sequence) {
    final long word = (sequence & 0xff) * BYTES_OF_ONES;
    int at = from;
    for (; at <= end - Long.BYTES; at += Long.BYTES) {
      buffer.putLong(at, word);
    }
    for (; at < end; at++) {
      buffer.putByte(at, (byte) sequence);
    }
  }

  static boolean bodyIsWhole(
      final DirectBuffer buffer, final int from, final int end, final long sequence) {
    long sum = 0;
    int tail = 0;
    int at = from;
    for (; at <= end - Long.BYTES; at += Long.BYTES) {
      sum += buffer.getLong(at);
    }
    final int words = (at - from) / Long.BYTES;
    final int tailBytes = end - at;
    for (; at < end; at++) {
      tail += buffer.getByte(at) & 0xff;
    }
    final long low = sequence & 0xff;
    return sum == low * BYTES_OF_ONES * words && tail == low * tailBytes;
  }
}
