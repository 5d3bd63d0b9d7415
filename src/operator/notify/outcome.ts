/** What became of a NOTIFY that could be read. */
export type HastenOutcome =
  /** The peers that it may be about, if there are any, are asked at once. */
  | 'hastened'
  /** There were too many: some of these peers are asked in their turn. */
  | 'limited'
  /** This replica does not lead: it follows nobody. */
  | 'standby'
  /** From somebody who is no peer. */
  | 'stranger'

/** What became of a packet at the port for NOTIFYs. */
export type NotifyOutcome =
  | HastenOutcome
  | 'bad_signature'
  /** It could not be read. */
  | 'malformed'
  /** Not a NOTIFY, one for another zone, or one with an EDNS version above 0. */
  | 'other'
  /** Unread: there were too many with a signature. */
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
