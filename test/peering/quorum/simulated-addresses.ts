/** First id of an IPv6 address. */
const IPV6_FROM = 100

export type Family = 4 | 6

/** The id of an IPv4 address is the number of its site. */
export function idOf(number: number, family: Family): number {
  return family === 4 ? number : number + IPV6_FROM
}

export function siteOf(id: number): number {
  return id % IPV6_FROM
}

export function isIpv6(id: number): boolean {
  return id >= IPV6_FROM
}

export function addressOf(id: number): string {
  return isIpv6(id) ? `2001:db8::${siteOf(id) + 1}` : `192.0.2.${id + 1}`
}
