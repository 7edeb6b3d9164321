package lanecast.rivals.jgroups;

import java.util.HashMap;
import java.util.Map;

/** The options of a member; the same as those of the other sides' members. */
final class Load {
  /** Stack: a file that JGroups ships, or one of the user's. */
  final String stack;

  /** Number of this member, from 0. */
  final int index;

  /** Members that all wait for. */
  final int members;

  /** Bytes of a message. */
  final int size;

  /** Messages to send; as many as fit into the time if 0. */
  final long messages;

  /** Time to send in, if there is no number of messages. */
  final long sendNs;

  /** Messages a second; 0: flat out. */
  final long rate;

  /** Round trips between the first two members, in place of messages to all. */
  final int rounds;

  /** Round trips before these. */
  final int warmRounds;

  /** Time of the warm-up, in which members send flat out. */
  final long warmNs;

  /** Whether the whole content of every message is written and checked, or its last word. */
  final boolean whole;

  /** The longest run. */
  final long limitNs;

  private final Map<String, String> options = new HashMap<>();

  Load(final String[] arguments) {
    for (int i = 0; i + 1 < arguments.length; i += 2) {
      options.put(arguments[i], arguments[i + 1]);
    }
    stack = options.getOrDefault("--stack", "udp.xml");
    index = (int) number("--index", 0);
    members = (int) number("--members", 2);
    size = (int) number("--size", 1000);
    messages = number("--messages", 0);
    sendNs = number("--send-ms", 1000) * 1_000_000;
    rate = number("--rate", 0);
    rounds = (int) number("--rounds", 0);
    warmRounds = (int) number("--warm-rounds", 0);
    warmNs = number("--warm-ms", 0) * 1_000_000;
    whole = number("--whole", 0) == 1;
    limitNs = number("--limit-ms", 30_000) * 1_000_000;
  }

  private long number(final String name, final long otherwise) {
    final String value = options.get(name);
    return value == null ? otherwise : Long.parseLong(value);
  }
}
