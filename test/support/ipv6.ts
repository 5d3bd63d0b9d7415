import { networkInterfaces } from 'node:os'

/** Options for a subtest that needs `::1`: as `needs`, skipped with the reason where there is none, but not in CI. */
export function needsIPv6(): { skip?: string } {
  const isThere = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  )
  return isThere || process.env.CI === 'true' ? {} : { skip: 'this machine has no ::1' }
}
