package lanecast.rivals;

import io.aeron.Aeron;

/** Channel and client set-up that both ends share. */
final class Streams {
  /** 16 MiB terms; a frame of up to 8 KiB, so that a message of 1500 bytes is one frame. */
  static final String CHANNEL = "aeron:ipc?term-length=16m|mtu=8k";

  private Streams() {}

  static Aeron connect(final Load load) {
    return Aeron.connect(
        new Aeron.Context().aeronDirectoryName(load.directory()).preTouchMappedMemory(true));
  }
}
