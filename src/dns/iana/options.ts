/** EDNS option codes (IANA "DNS EDNS0 Option Codes (OPT)"). */
export const OptionCode = {
  NSID: 3,
  DAU: 5,
  DHU: 6,
  N3U: 7,
  ECS: 8,
  EXPIRE: 9,
  COOKIE: 10,
  KEEPALIVE: 11,
  PADDING: 12,
  CHAIN: 13,
  KEYTAG: 14,
  EDE: 15,
  /**
   * A code of ours for local use (RFC 6891 section 9), without data: marks a NOTIFY that its sender
   * received and forwards.
   */
  PASSED_ON: 65313,
} as const

/** Extended DNS error codes (RFC 8914 section 4). */
export const EdeCode = {
  OTHER: 0,
  UNSUPPORTED_DNSKEY_ALGORITHM: 1,
  UNSUPPORTED_DS_DIGEST_TYPE: 2,
  STALE_ANSWER: 3,
  FORGED_ANSWER: 4,
  DNSSEC_INDETERMINATE: 5,
  DNSSEC_BOGUS: 6,
  SIGNATURE_EXPIRED: 7,
  SIGNATURE_NOT_YET_VALID: 8,
  DNSKEY_MISSING: 9,
  RRSIGS_MISSING: 10,
  NO_ZONE_KEY_BIT_SET: 11,
  NSEC_MISSING: 12,
  CACHED_ERROR: 13,
  NOT_READY: 14,
  BLOCKED: 15,
  CENSORED: 16,
  FILTERED: 17,
  PROHIBITED: 18,
  STALE_NXDOMAIN_ANSWER: 19,
  NOT_AUTHORITATIVE: 20,
  NOT_SUPPORTED: 21,
  NO_REACHABLE_AUTHORITY: 22,
  NETWORK_ERROR: 23,
  INVALID_DATA: 24,
} as const
