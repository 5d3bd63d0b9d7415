import t from 'tap'
import { listenBatch } from '../../../src/transport/udp/batch/listener.ts'
import { chooseUdp } from '../../../src/transport/udp/choose.ts'
import { listenDgram } from '../../../src/transport/udp/dgram.ts'

const here = (): void => {}
const nowhere = (): void => {
  throw new Error('koffi does not load: no binary')
}

t.test('UDP goes in batches where it can, and the log says which it is', async (t) => {
  const table = [
    { forced: undefined, load: here, listen: listenBatch, says: 'batch (recvmmsg)' },
    { forced: '', load: here, listen: listenBatch, says: 'batch (recvmmsg)' },
    { forced: 'batch', load: here, listen: listenBatch, says: 'batch (recvmmsg)' },
    { forced: 'dgram', load: here, listen: listenDgram, says: 'dgram (SEXTANT_UDP)' },
    { forced: 'dgram', load: nowhere, listen: listenDgram, says: 'dgram (SEXTANT_UDP)' },
    {
      forced: undefined,
      load: nowhere,
      listen: listenDgram,
      says: 'dgram (koffi does not load: no binary)',
    },
  ]
  for (const { forced, load, listen, says } of table) {
    const chosen = chooseUdp(forced, load)
    t.equal(chosen.listen, listen, says)
    t.equal(chosen.description, says)
  }
})

t.test('what is forced and can not be had is refused', async (t) => {
  t.throws(() => chooseUdp('batch', nowhere), {
    code: 'ENVIRONMENT',
    message: 'SEXTANT_UDP=batch: koffi does not load: no binary',
  })
  t.throws(() => chooseUdp('fast', here), {
    code: 'ENVIRONMENT',
    message: 'SEXTANT_UDP is "fast": leave it out, or set it to batch or dgram',
  })
})
