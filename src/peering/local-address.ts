import { type Address, type Cidr, isInNetwork, scanCidr } from '../dns/text/address.ts'

/** Networks whose addresses contain an IPv4 address, and where: IPv4-mapped, NAT64, 6to4, IPv4-compatible. */
const EMBEDDING = [
  ['::ffff:0:0/96', 12],
  ['64:ff9b::/96', 12],
  ['2002::/16', 2],
  ['::/96', 12],
].map(([text, at]) => ({ cidr: scanCidr(String(text))!, at: Number(at) }))
/** Link-local networks have, for example, the metadata services of clouds. */
const LOCAL = [
  ['127.0.0.0/8', 'a loopback address'],
  ['::1/128', 'a loopback address'],
  ['::/128', 'an address of this host'],
  ['0.0.0.0/8', 'an address of this host'],
  ['169.254.0.0/16', 'a link-local address'],
  ['fe80::/10', 'a link-local address'],
].map(([text, what]) => ({ cidr: scanCidr(text!)!, what: what! }))

/**
 * Says what an address of this host or link is, also one that contains such an IPv4 address; undefined = it is another
 * one, or it is in `allowed`.
 */
export function findLocal(address: Address, allowed: readonly Cidr[]): string | undefined {
  const forms = [address, ...embedded(address)]
  if (allowed.some((cidr) => forms.some((form) => isIn(form, cidr)))) return undefined
  return LOCAL.find(({ cidr }) => forms.some((form) => isIn(form, cidr)))?.what
}

function embedded({ bytes, family }: Address): Address[] {
  const found = EMBEDDING.find(({ cidr }) => family === 2 && isInNetwork(bytes, cidr))
  return found === undefined ? [] : [{ family: 1, bytes: bytes.slice(found.at, found.at + 4) }]
}

function isIn({ bytes, family }: Address, cidr: Cidr): boolean {
  return family === cidr.family && isInNetwork(bytes, cidr)
}
