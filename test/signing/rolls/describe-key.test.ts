import t from 'tap'
import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import { FLAGS_KSK, generatePrivateKey, signingKey } from '../../../src/dns/dnssec/dnskey.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { describeKey } from '../../../src/signing/rolls/describe-key.ts'
import { scanRollState } from '../../../src/signing/rolls/roll-state.ts'

t.test('a wait that is over needs no step of the server', async (t) => {
  const zone = scanName('example.org.')!
  const { EcdsaP256 } = Algorithm
  const made = signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, FLAGS_KSK)
  const key = { ...made, zone, id: 'Kexample.org.+013+00895' }
  const rolls = scanRollState(`sextant key rolls 1
configured csk ECDSAP256SHA256
wanted csk ECDSAP256SHA256
delegation signed
key ${key.id} csk ECDSAP256SHA256 in 2026-11-30T22:00:00Z
cds 2026-11-30T22:00:00Z
dnskey 2026-11-30T22:00:00Z known 1 ${key.id}
signers 2026-11-30T22:00:00Z known 1 ${key.id}
ds 2026-11-30T22:00:00Z known 1 ${key.id}
ds-until 2026-11-30T23:00:00Z 2026-11-30T22:00:00Z -
`)
  const stateAt = (time: string): string => {
    const nowSeconds = Date.parse(time) / 1000
    return describeKey(key, [key], { rolls, next: undefined, nowSeconds }).state
  }
  t.equal(stateAt('2026-11-30T22:59:59Z'), 'ready')
  t.equal(stateAt('2026-11-30T23:00:00Z'), 'active')
})
