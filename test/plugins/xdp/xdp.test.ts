import t from 'tap'
import { xdp } from '../../../src/plugins/xdp/setup.ts'
import { XDP } from '../../../src/transport/udp/xdp/settings.ts'
import { SetUp, setupError } from '../../support/setup.ts'

const DEFAULT = { queues: 0, mode: 'auto' }

t.test('interfaces and how they are served', async (t) => {
  const table = [
    { given: 'xdp eth1', want: [{ interfaceName: 'eth1', ...DEFAULT }] },
    {
      given: 'xdp eth1 eth2.7 {\n queues 4\n mode native\n}\nxdp eth3',
      want: [
        { interfaceName: 'eth1', queues: 4, mode: 'native' },
        { interfaceName: 'eth2.7', queues: 4, mode: 'native' },
        { interfaceName: 'eth3', ...DEFAULT },
      ],
    },
    {
      given: 'xdp eth1 {\n mode copy\n}',
      want: [{ interfaceName: 'eth1', queues: 0, mode: 'copy' }],
    },
  ]
  for (const { given, want } of table) {
    t.strictSame(new SetUp(xdp, given).block.shared.find(XDP), want, given)
  }
})

t.test('everything else is refused', async (t) => {
  const table = [
    { given: 'xdp', want: 'at least one interface name is expected' },
    { given: 'xdp a/b', want: 'invalid interface name: "a/b"' },
    { given: 'xdp abcdefghijklmnop', want: 'invalid interface name' },
    { given: 'xdp eth1 eth1', want: 'interface eth1 is listed twice' },
    { given: 'xdp eth1\nxdp eth1', want: 'interface eth1 is listed twice' },
    { given: 'xdp eth1 {\n queues 0\n}', want: 'queues is "0"; use a number from 1 to 64' },
    { given: 'xdp eth1 {\n queues 65\n}', want: 'queues is "65"' },
    { given: 'xdp eth1 {\n queues all\n}', want: 'queues is "all"' },
    { given: 'xdp eth1 {\n queues\n}', want: 'Wrong argument count' },
    { given: 'xdp eth1 {\n mode fast\n}', want: 'mode is "fast"; use auto, native, generic, copy' },
    { given: 'xdp eth1 {\n depth 3\n}', want: 'unknown property "depth"; use queues or mode' },
  ]
  for (const { given, want } of table) t.match(setupError(xdp, given), want, given)
})
