import t from 'tap'
import { verifySet } from '../../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { signInThread } from '../../../src/signing/zone/sign-in-thread.ts'
import { wire } from '../../support/zone-text.ts'
import { APEX, KSK, ZSK } from './signing-stage.ts'

const TIMES = { inceptionSeconds: 1_700_000_000, expirationSeconds: 2_900_000_000 }

t.test('a thread makes the signatures of several calls, in order', async (t) => {
  const requests = [KSK, ZSK].flatMap((key) =>
    [1, 2, 3].map((count) => ({
      key,
      times: TIMES,
      set: {
        owner: wire(`n${count}.example.`),
        type: RRType.TXT,
        ttlSeconds: 2 ** 31 - 1,
        rdata: Array.from({ length: count }, (_, i) => new Uint8Array(1 + i * 200).fill(i)),
      },
    })),
  )
  const calls = await Promise.all([
    signInThread(APEX, requests),
    signInThread(APEX, []),
    signInThread(APEX, requests.toReversed()),
  ])
  t.equal(calls[1].length, 0)
  for (const signatures of [calls[0], calls[2].toReversed()]) {
    for (const [i, { key, set }] of requests.entries()) {
      t.ok(verifySet(set, signatures[i]!, key.dnskey))
    }
  }
})

t.test('a call that cannot be signed does not disturb the others', async (t) => {
  const set = { owner: APEX, type: RRType.TXT, ttlSeconds: 60, rdata: [new Uint8Array([1, 65])] }
  const good = [{ key: KSK, times: TIMES, set }]
  const bad = [{ key: { ...KSK, algorithm: 99 }, times: TIMES, set }]
  const [before, failed, after] = await Promise.allSettled([
    signInThread(APEX, good),
    signInThread(APEX, bad),
    signInThread(APEX, good),
  ])
  t.equal(failed.status, 'rejected')
  t.strictSame([before.status, after.status], ['fulfilled', 'fulfilled'])
})

t.test('a key that cannot be sent to the thread leaves no call behind', async (t) => {
  const set = { owner: APEX, type: RRType.TXT, ttlSeconds: 60, rdata: [new Uint8Array([1, 65])] }
  const key = Object.defineProperty({ ...KSK }, 'privateKey', {
    get() {
      throw new Error('broken')
    },
  })
  await t.rejects(signInThread(APEX, [{ key, times: TIMES, set }]), /broken/)
  t.notOk(process.getActiveResourcesInfo().includes('MessagePort'), 'the process can end')
})
