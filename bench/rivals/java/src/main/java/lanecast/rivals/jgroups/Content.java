package lanecast.rivals.jgroups;

import java.nio.ByteBuffer;

/**
 * The content of a message: words of 64 bits behind the header, little endian, which follow from
 * sender and sequence. The rules are those of the other sides' members: with {@code whole} all words
 * are written and looked at, otherwise only the last one, as reading all would be most of what a
 * message costs.
 */
final class Content {
  /** Bytes before the content. */
  static final int HEADER_BYTES = 24;

  private static final long SPREAD = 0x9e37_79b9_7f4a_7c15L;

  private final boolean whole;

  Content(final boolean whole) {
    this.whole = whole;
  }

  private int first(final int words) {
    return whole ? 0 : Math.max(0, words - 1);
  }

  /** Writes the content of a message of this sender. */
  void write(final int sender, final long sequence, final ByteBuffer message) {
    final int words = (message.limit() - HEADER_BYTES) / Long.BYTES;
    for (int i = first(words); i < words; i++) {
      message.putLong(HEADER_BYTES + i * Long.BYTES, seed(sender, sequence) + i);
    }
  }

  /** Whether the content is as its sender has written it. */
  boolean isIntact(final int sender, final long sequence, final ByteBuffer message) {
    final int words = (message.limit() - HEADER_BYTES) / Long.BYTES;
    for (int i = first(words); i < words; i++) {
      if (message.getLong(HEADER_BYTES + i * Long.BYTES) != seed(sender, sequence) + i) {
        return false;
      }
    }
    return true;
  }

  /** The digest with this message behind the earlier ones of its sender. */
  long digest(final long before, final long sequence, final ByteBuffer message) {
    final int words = (message.limit() - HEADER_BYTES) / Long.BYTES;
    long digest = step(before, sequence);
    for (int i = first(words); i < words; i++) {
      digest = step(digest, message.getLong(HEADER_BYTES + i * Long.BYTES));
    }
    return digest;
  }

  private static long seed(final int sender, final long sequence) {
    return (sequence ^ (long) sender << 56) * SPREAD;
  }

  private static long step(final long digest, final long word) {
    return Long.rotateLeft(digest ^ word, 23) * SPREAD;
  }
}
