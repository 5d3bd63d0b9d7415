import { spawnSync } from 'node:child_process'
import t from 'tap'
import { NftSession } from '../../../../src/egress/sinks/nft/nft-session.ts'

const hasNft = spawnSync('unshare', ['-n', 'nft', 'list', 'ruleset']).status === 0
const NFT = ['unshare', '-n', 'nft']

t.test('nft', { skip: hasNft ? false : 'needs root and nft' }, async (t) => {
  const ends: string[] = []
  const session = new NftSession({ command: NFT, onEnd: (reason) => ends.push(reason) })
  t.teardown(() => session.close())

  await t.test('a transaction is in force when it is acknowledged', async (t) => {
    const made = await session.commit([
      'add table inet x',
      'add set inet x s { type ipv4_addr; flags timeout; }',
    ])
    t.equal(made, '')
    t.equal(await session.commit(['add element inet x s { 192.0.2.1 timeout 60s }']), '')
    t.match(await session.list('list set inet x s'), /192\.0\.2\.1 timeout 1m/)
    t.equal(await session.commit([]), '')
  })

  await t.test('all or nothing', async (t) => {
    const fault = await session.commit([
      'add element inet x s { 192.0.2.2 }',
      'delete element inet x s { 192.0.2.3 }',
    ])
    t.match(fault, /^Error: Could not process rule: No such file or directory$/)
    t.notMatch(await session.list('list set inet x s'), /192\.0\.2\.2/)
    t.match(await session.commit(['nonsense']), /^Error: syntax error/)
    await t.rejects(session.list('list set inet x other'), /Error: No such file/)
  })

  await t.test('results come in the order of the transactions', async (t) => {
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        session.commit([
          i % 2 === 0
            ? `add element inet x s { 198.51.100.${i} }`
            : `delete element inet x s { 203.0.113.${i} }`,
        ]),
      ),
    )
    t.strictSame(
      results.map((text) => text === ''),
      results.map((_, i) => i % 2 === 0),
    )
  })

  await t.test('a long transaction', async (t) => {
    const elements = Array.from({ length: 5000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
    t.equal(await session.commit([`add element inet x s { ${elements.join(', ')} }`]), '')
    const listed = await session.list('list set inet x s')
    t.equal(listed.match(/\b10\.0\.\d+\.\d+/g)?.length, 5000)
  })

  await t.test('an element that is added again gets a new timeout', async (t) => {
    const element = '192.0.2.9'
    const add = (seconds: number) => `add element inet x s { ${element} timeout ${seconds}s }`
    await session.commit([add(10)])
    // The kernel before 6.12 ignores the second `add` of two.
    t.equal(
      await session.commit([add(500), `delete element inet x s { ${element} }`, add(500)]),
      '',
    )
    t.match(await session.list('list set inet x s'), /192\.0\.2\.9 timeout 8m20s/)
    const expired = '192.0.2.10'
    const other = (seconds: number) => `add element inet x s { ${expired} timeout ${seconds}s }`
    t.equal(
      await session.commit([other(5), `delete element inet x s { ${expired} }`, other(5)]),
      '',
    )
  })

  await t.test('the process ends', async (t) => {
    const open = session.commit(['add table inet y'])
    session.close()
    t.equal(await open, '', 'what it got is done')
    const late = await session.commit(['add table inet z'])
    t.match(late, /nft ended with exit code 0/)
    await t.rejects(session.list('list ruleset'), /nft ended/)
    t.equal(ends.length, 1)
  })
})

t.test('a process that cannot run', async (t) => {
  for (const [command, reason] of [
    [['/nonexistent/nft'], /nft ended with exit code 127: .*\/nonexistent\/nft/],
    [['false'], /nft ended with exit code 1$/],
  ] as const) {
    const ends: string[] = []
    const session = new NftSession({ command, onEnd: (end) => ends.push(end) })
    t.match(await session.commit(['add table inet x']), reason)
    t.match(await session.commit(['add table inet x']), reason)
    t.equal(ends.length, 1)
  }
})
