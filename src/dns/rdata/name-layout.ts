/** Places of the names that may be compressed when rdata is encoded. */
export const NameLayout = {
  /** None: the rdata is copied unchanged. */
  None: 0,
  /** One name, from offset 0 to the end. */
  Name: 1,
  /** A name from offset 2 to the end (MX). */
  NameAt2: 2,
  /** Two names from offset 0, then other octets (SOA, MINFO). */
  TwoNames: 3,
} as const

/**
 * `NameLayout` by type, for every 16-bit type. Contains only the types of RFC 1035: names in the
 * rdata of other types must not be compressed (RFC 3597 section 4).
 */
export const rdataNameLayout: Uint8Array = new Uint8Array(65536)

// NS MD MF CNAME MB MG MR PTR
for (const type of [2, 3, 4, 5, 7, 8, 9, 12]) rdataNameLayout[type] = NameLayout.Name
// MX
rdataNameLayout[15] = NameLayout.NameAt2
// SOA MINFO
for (const type of [6, 14]) rdataNameLayout[type] = NameLayout.TwoNames
