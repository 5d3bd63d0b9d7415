/** What to ask, as in the address of the page; '' = absent. */
export interface WhyFields {
  readonly name: string
  readonly type: string
  /** The client's own address. */
  readonly client: string
  /** The address of the resolver that asks for the client. */
  readonly resolver: string
  /** The client subnet that the query has. */
  readonly subnet: string
  readonly seed: string
}

export const SEED_DEFAULT = 1
const SEED_MAX = 2 ** 32 - 1

/** The body of `POST /v1/explain`; undefined = a field is missing. */
export function questionOf(fields: WhyFields): object | undefined {
  const { name, type, client, resolver, subnet } = fields
  const source = resolver || client
  if (name === '' || (source === '' && subnet === '')) return undefined
  return {
    name,
    type: type || 'A',
    ...(source === '' ? {} : { client: source }),
    ...(subnet === '' ? {} : { subnet }),
    seed: seedOf(fields),
  }
}

export function seedOf({ seed }: WhyFields): number {
  const value = /^\d{1,10}$/.test(seed) ? Number(seed) : SEED_DEFAULT
  return value <= SEED_MAX ? value : SEED_DEFAULT
}

/** What the fields mean together; '' = nothing to say. */
export function noteOf({ client, resolver, subnet }: WhyFields): string {
  if (resolver === '' || client === '' || subnet !== '') return ''
  return 'The resolver sends no client subnet: the server sees the resolver, not the client.'
}
