import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { DEFAULT_POLICY, scanPolicy, withOverrides } from '../../../src/signing/rolls/policy.ts'

function scan(text: string) {
  const lines = text.split(';').map((line, i) => ({
    words: line.trim().split(/\s+/),
    position: { file: 'Corefile', line: i + 1 },
  }))
  return scanPolicy('slow', text === '' ? [] : lines)
}

t.test('a policy without lines is the default with another name', async (t) => {
  const { signing, ...rest } = scan('')
  const { signing: defaults, ...others } = DEFAULT_POLICY
  t.strictSame(rest, others)
  t.strictSame(signing, { ...defaults, name: 'slow' })
})

t.test('properties', async (t) => {
  const policy = scan(
    'split; algorithm rsasha256 3072; ksk-lifetime 365d; zsk-lifetime unlimited; dnskey-ttl 2h; ' +
      'zone-propagation-delay 10m; parent-propagation-delay 2h; parent-ds-ttl 1h; publish-safety 30m; ' +
      'retire-safety 45m; signatures-validity 20d; signatures-jitter 1d; signatures-refresh 7d; ' +
      'inception-offset 2h; cds-digest-types SHA-256 sha-384; denial nsec3 opt-out',
  )
  t.match(policy, {
    split: true,
    algorithm: 8,
    rsaBits: 3072,
    lifetimeSeconds: { csk: Infinity, ksk: 31_536_000, zsk: Infinity },
    dnskeyTtlSeconds: 7200,
    zonePropagationSeconds: 600,
    parentPropagationSeconds: 7200,
    parentDsTtlSeconds: 3600,
    publishSafetySeconds: 1800,
    retireSafetySeconds: 2700,
    cdsDigests: [2, 4],
    signing: {
      denial: 'nsec3',
      optOut: true,
      validitySeconds: 1_728_000,
      jitterSeconds: 86_400,
      refreshSeconds: 604_800,
      inceptionOffsetSeconds: 7200,
    },
  })
  const compact = withOverrides(policy, { denial: 'compact', split: false, algorithm: 15 })
  t.match(compact, { split: false, algorithm: 15, signing: { denial: 'compact', optOut: false } })
  t.match(withOverrides(policy, {}), policy)
})

t.test('faults', async (t) => {
  const table: readonly (readonly [text: string, line: number, message: string])[] = [
    ['split; spilt', 2, 'policy slow: spilt: unknown property; did you mean split?'],
    ['split; split', 2, 'policy slow: split: it is set twice'],
    ['split yes', 1, 'policy slow: split: it has no argument'],
    [
      'algorithm rsasha1',
      1,
      "policy slow: algorithm: 'rsasha1' is not an algorithm that signs; use RSASHA256, RSASHA512, " +
        'ECDSAP256SHA256, ECDSAP384SHA384, ED25519; did you mean RSASHA512?',
    ],
    [
      'algorithm ED25519 256',
      1,
      'policy slow: algorithm: only RSA keys have a length; write the name alone',
    ],
    ['algorithm RSASHA256 1024', 1, "policy slow: algorithm: '1024' is not 2048, 3072, 4096"],
    ['dnskey-ttl soon', 1, 'policy slow: dnskey-ttl: use one duration, such as 90d, 12h or 300'],
    [
      'cds-digest-types SHA-1',
      1,
      "policy slow: cds-digest-types: 'SHA-1' is not SHA-256 or SHA-384",
    ],
    ['denial nsec opt-out', 1, 'policy slow: denial: only nsec3 has opt-out'],
    ['denial none', 1, 'policy slow: denial: use nsec, nsec3, nsec3 opt-out or compact'],
    [
      'csk-lifetime 2d',
      1,
      'policy slow: csk-lifetime: a roll takes longer than the key lives; use more than 2d8h10m, or smaller delays and TTLs',
    ],
    [
      'split; zsk-lifetime 1h',
      2,
      'policy slow: zsk-lifetime: a roll takes longer than the key lives; use more than 5h15m, or smaller delays and TTLs',
    ],
    [
      'signatures-validity 5d',
      1,
      'policy slow: signatures-refresh: signatures would always be due: it and signatures-jitter must be less than ' +
        'signatures-validity, 5d',
    ],
    [
      'signatures-refresh 5m',
      1,
      'policy slow: signatures-refresh: signatures would expire before new ones are on all servers; use more than ' +
        'zone-propagation-delay, 5m',
    ],
  ]
  for (const [text, line, message] of table) {
    try {
      scan(text)
      t.fail(text)
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      t.equal(error.message, message)
      t.equal(error.position?.line, line)
    }
  }
})
