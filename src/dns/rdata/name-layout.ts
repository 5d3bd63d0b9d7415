/** Where the names are that may be compressed when rdata is composed. */
export const NameLayout = {
  /** None: the rdata goes out as it is. */
  None: 0,
  /** One name, at offset 0, to the end. */
  Name: 1,
  /** A name at offset 2, to the end (MX). */
  NameAt2: 2,
  /** Two names from offset 0, then what is left (SOA, MINFO). */
  TwoNames: 3,
} as const

/**
 * `NameLayout` by type, for every 16-bit type. Only the types of RFC 1035 are here: names in the rdata
 * of any other must not be compressed (RFC 3597 section 4).
 */
export const rdataNameLayout: Uint8Array = new Uint8Array(65536)

// NS MD MF CNAME MB MG MR PTR
for (const type of [2, 3, 4, 5, 7, 8, 9, 12]) rdataNameLayout[type] = NameLayout.Name
// MX
rdataNameLayout[15] = NameLayout.NameAt2
// SOA MINFO
for (const type of [6, 14]) rdataNameLayout[type] = NameLayout.TwoNames
