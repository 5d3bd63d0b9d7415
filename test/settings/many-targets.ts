import { HOST } from './nameserver.ts'

/** Nine endpoints with 256 addresses each. */
export const many = (network: number) => ({
  endpoints: Array.from({ length: 9 }, (_, i) => {
    const targets = Array.from({ length: 256 }, (_, k) => `10.${network}.${i}.${k}`)
    return `${HOST} A ${targets.join()} id=${network}-${9 - i}`
  }),
})
export const byIdentifier = (a: string, b: string): number =>
  identifierOf(a) < identifierOf(b) ? -1 : 1
const identifierOf = (endpoint: string): string => endpoint.split(' id=')[1]!
/** The set of all targets. */
export const printMany = (...endpoints: readonly string[][]): string => {
  const targets = endpoints.flat().flatMap((text) => text.split(' ')[2]!.split(','))
  return `app A ttl=60 *: ${targets.sort().join('+')}`
}
