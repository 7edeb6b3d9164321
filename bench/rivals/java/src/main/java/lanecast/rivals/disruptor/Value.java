package lanecast.rivals.disruptor;

/** What a ring holds in each of its places. */
final class Value {
  long number;
}
