import t from 'tap'
import { chooseUdp } from '../../../src/transport/udp/choose.ts'

const here = (): void => {}
const nowhere = (): void => {
  throw new Error('koffi cannot be loaded: no binary')
}

t.test('UDP goes in batches where it can, and the log says which it is', async (t) => {
  const table = [
    { forced: undefined, load: here, kind: 'batch', says: 'batch (recvmmsg)' },
    { forced: '', load: here, kind: 'batch', says: 'batch (recvmmsg)' },
    { forced: 'batch', load: here, kind: 'batch', says: 'batch (recvmmsg)' },
    { forced: 'dgram', load: here, kind: 'dgram', says: 'dgram (SEXTANT_UDP)' },
    { forced: 'dgram', load: nowhere, kind: 'dgram', says: 'dgram (SEXTANT_UDP)' },
    {
      forced: undefined,
      load: nowhere,
      kind: 'dgram',
      says: 'dgram (koffi cannot be loaded: no binary)',
    },
  ]
  for (const { forced, load, kind, says } of table) {
    const chosen = chooseUdp(forced, load)
    t.equal(chosen.kind, kind, says)
    t.equal(chosen.description, says)
  }
})

t.test('a forced transport that is not available is refused', async (t) => {
  t.throws(() => chooseUdp('batch', nowhere), {
    message: 'SEXTANT_UDP=batch: koffi cannot be loaded: no binary',
  })
  t.throws(() => chooseUdp('fast', here), {
    message: 'SEXTANT_UDP is "fast"; unset it, or set it to batch or dgram',
  })
})
