/** The outcome of a NOTIFY that could be parsed. */
export type HastenOutcome =
  /** The peers that it may concern, if any, are queried at once. */
  | 'hastened'
  /** Too many NOTIFYs: some of these peers are queried at their next regular poll. */
  | 'limited'
  /** This replica is not the leader: it follows no peers. */
  | 'standby'
  /** The sender is not a peer. */
  | 'stranger'

/** The outcome of a packet at the port for NOTIFYs. */
export type NotifyOutcome =
  | HastenOutcome
  | 'bad_signature'
  /** It could not be parsed. */
  | 'malformed'
  /** Not a NOTIFY, one for another zone, or one with an EDNS version above 0. */
  | 'other'
  /** Not processed: too many signed packets. */
  | 'dropped'

export const NOTIFY_OUTCOMES: readonly NotifyOutcome[] = [
  'hastened',
  'limited',
  'standby',
  'stranger',
  'bad_signature',
  'malformed',
  'other',
  'dropped',
]
