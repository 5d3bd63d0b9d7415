import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { InputError } from '../../src/base/errors.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../src/base/timers.ts'
import type { Directive, SetupContext } from '../../src/plugin/directive.ts'
import type { CorefileSource } from '../../src/server/corefile-source.ts'
import { ServerTotals } from '../../src/server/counters.ts'
import type { ListenPlan } from '../../src/server/listen-plan.ts'
import { type DataThreads, describe, Supervisor } from '../../src/server/supervisor.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { until } from '../support/until.ts'

/** A supervisor over toy directives and listeners, and what happened, in order. */
function stage(
  source: CorefileSource,
  refused: ReadonlySet<string> = new Set(),
  dataThreads?: (events: string[]) => DataThreads,
) {
  const events: string[] = []
  /** Who served, and after what. */
  const serving: string[] = []
  const contexts: SetupContext[] = []
  const toy = (name: string): Directive => ({
    name,
    setup: (c) => {
      contexts.push(c)
      c.dispenser.next()
      const args = c.dispenser.remainingArgs()
      const label = `${name} ${c.block.keys[0]?.zoneText}`
      if (args[0] === 'bad') throw c.dispenser.argError()
      if (args[0] === 'bind') c.block.listenHosts.push(...args.slice(1))
      const reply = () => ({ status: 200, contentType: 'text/plain', body: label })
      events.push(`setup ${label}`)
      return {
        handler: (next) => ({ name, serve: (tx) => next.serve(tx) }),
        answers: true,
        http: args[0] === 'http' ? { address: args[1]!, path: args[2]!, reply } : undefined,
        start: async () => {
          events.push(`start ${label}`)
          if (args[0] === 'nostart') throw new Error('cannot start')
          if (args[0] === 'slow') await until(() => events.includes('go on'), 'the word to go on')
        },
        serving: () => serving.push(`${label} after ${events.at(-1)}`),
        stop: () => {
          events.push(`shutdown ${label}`)
          if (args[0] === 'nostop') throw new Error('cannot stop')
        },
        exit: () => {
          events.push(`final ${label}`)
        },
      }
    },
  })
  const open = async (kind: string, address: string) => {
    if (refused.has(address)) throw new InputError(undefined, `no ${address}`)
    events.push(`open ${kind} ${address}`)
    return {
      port: 5353,
      use: () => events.push(`use ${kind} ${address}`),
      close: async () => {
        events.push(`close ${kind} ${address}`)
      },
    }
  }
  const lines: string[] = []
  const supervisor = new Supervisor(source, {
    loadDirectives: async () => [toy('b'), toy('a')],
    directiveNames: ['a', 'b', 'missing'],
    dnsPort: 53,
    env: {},
    clock: systemClock,
    timers: systemTimers,
    random: Math.random,
    metrics: new MetricsRegistry(),
    serverCounters: new ServerTotals(),
    sink: (line) => lines.push(line),
    lines: lineBufferTo(lines),
    openDns: (plan: ListenPlan) => open('dns', plan.address),
    openHttp: (address) => open('http', address),
    openAdmin: (key) => open('admin', key),
    dataThreads: dataThreads?.(events),
  })
  return { supervisor, events, serving, lines, contexts }
}

function text(text: string): CorefileSource {
  return { kind: 'text', name: 'Corefile', text }
}

/** A Corefile on disk that the test rewrites. */
function file(t: Test, text: string) {
  const path = join(t.testdir({ Corefile: text }), 'Corefile')
  return {
    path,
    source: { kind: 'file', path } as const,
    write: (text: string) => writeFileSync(path, text),
  }
}

t.test('setups run in the order of the chain, then blocks; sockets open last', async (t) => {
  const { supervisor, events } = stage(text('x {\n b\n a http :1 /p\n}\ny:54 {\n a\n}\n'))
  await supervisor.start()
  t.strictSame(events, [
    'setup a x.',
    'setup a y.',
    'setup b x.',
    'start a x.',
    'start a y.',
    'start b x.',
    'open dns dns://:53',
    'open dns dns://:54',
    'open http :1',
  ])
})

/** Data threads that tell a slow hook to go on. */
function threads(events: string[]): DataThreads {
  return {
    prepare: async () => {
      events.push('go on')
      return {
        commit: async () => void events.push('commit threads'),
        abandon: () => events.push('abandon threads'),
      }
    },
    close: async () => {},
  }
}

t.test('data threads are prepared while the start-up hooks run', async (t) => {
  const { supervisor, events } = stage(text('x {\n a slow\n}\n'), undefined, threads)
  await supervisor.start()
  t.strictSame(events, [
    'setup a x.',
    'go on',
    'start a x.',
    'open dns dns://:53',
    'commit threads',
  ])
  for (const [block, refused] of [
    ['a nostart', ''],
    ['a', 'dns://:53'],
  ] as const) {
    const failing = stage(text(`x {\n ${block}\n}\n`), new Set([refused]), threads)
    await t.rejects(failing.supervisor.start())
    t.strictSame(failing.events.slice(-2), ['abandon threads', 'shutdown a x.'], block)
    t.notOk(failing.events.includes('commit threads'))
  }
})

t.test('keys are grouped by address, bound or not', async (t) => {
  const { supervisor } = stage(text('x y {\n a bind 127.0.0.1 ::1\n}\nz:0 {\n b\n}\n'))
  await supervisor.start()
  const got = supervisor.plans.map(({ address, host, port, blocks }) => {
    return [address, host, port, blocks.map((block) => block.zoneText)]
  })
  t.strictSame(got, [
    ['dns://127.0.0.1:53', '127.0.0.1', 5353, ['x.', 'y.']],
    ['dns://[::1]:53', '::1', 5353, ['x.', 'y.']],
    ['dns://:0', '', 5353, ['z.']],
  ])
})

t.test('the chain follows the order of directives, and an empty one refuses', async (t) => {
  const { supervisor } = stage(text('x {\n b\n a\n}\ny {\n}\n'))
  await supervisor.start()
  const [x, y] = supervisor.plans[0]?.blocks ?? []
  t.equal(x?.chain.name, 'a')
  t.equal(y?.chain.name, '')
  t.equal(y?.chain.serve(undefined as never), 5)
})

const failures: readonly {
  name: string
  given: string
  want: string
  events?: readonly string[]
}[] = [
  {
    name: 'a directive that refuses its arguments is named in front of the place',
    given: 'x {\n a bad\n}',
    want: "plugin/a: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'bad'",
    events: [],
  },
  {
    name: 'a directive that CoreDNS has and we have not',
    given: 'x {\n missing\n}',
    want: 'Corefile:2 - Error during parsing: plugin "missing" is not supported by this version of Sextant',
    events: [],
  },
  {
    name: 'an unknown directive',
    given: 'x {\n nobody\n}',
    want: "Corefile:2 - Error during parsing: Unknown directive 'nobody'",
    events: [],
  },
  {
    name: 'a scheme that we cannot serve yet',
    given: 'x {\n}\ntls://y {\n}',
    want: 'Corefile:3: scheme "tls" is not supported by this version of Sextant',
    events: [],
  },
  {
    name: 'a key twice',
    given: 'x {\n}\nx {\n}',
    want: 'Corefile:3: cannot serve dns://x.:53 - it is already defined',
    events: [],
  },
  {
    name: 'a start-up hook that fails has the place of its directive, and all are shut down',
    given: 'x {\n a\n b nostart\n}',
    want: 'Corefile:3: plugin/b: cannot start',
    events: [
      'setup a x.',
      'setup b x.',
      'start a x.',
      'start b x.',
      'shutdown a x.',
      'shutdown b x.',
    ],
  },
]

t.test('a start that fails says why in one line and leaves nothing behind', async (t) => {
  for (const { name, given, want, events } of failures) {
    const staged = stage(text(given))
    const error = await staged.supervisor.start().catch((error) => error)
    t.equal(describe(error), want, name)
    if (events !== undefined) t.strictSame(staged.events, events, name)
    t.equal(await staged.supervisor.stop(), 0, name)
  }
})

t.test('an address that cannot be had closes those that could', async (t) => {
  const refused = new Set(['dns://:54'])
  const { supervisor, events } = stage(text('x y:54 {\n a http :1 /p\n}'), refused)
  await t.rejects(supervisor.start(), { message: 'no dns://:54' })
  t.strictSame(events.slice(2), ['open dns dns://:53', 'close dns dns://:53', 'shutdown a x.'])
})

t.test('a reload inherits sockets, and the old instance goes last', async (t) => {
  const { source, write } = file(t, 'x y:54 {\n a http :1 /p\n}')
  const { supervisor, events, lines } = stage(source)
  await supervisor.start()
  events.length = 0
  write('x z:55 {\n b http :1 /q\n}')
  t.equal(await supervisor.reload(), true)
  t.strictSame(events, [
    'setup b x.',
    'start b x.',
    'open dns dns://:55',
    'use dns dns://:53',
    'close dns dns://:54',
    'use http :1',
    'shutdown a x.',
  ])
  t.strictSame(lines, ['[INFO] Reloading', '[INFO] Reloading complete'])
})

t.test('a reload that fails changes nothing', async (t) => {
  const { source, write, path } = file(t, 'x {\n a http :1 /p\n}')
  const refused = new Set<string>()
  const { supervisor, events, lines } = stage(source, refused)
  await supervisor.start()
  const chain = supervisor.plans[0]?.blocks[0]?.chain
  refused.add('dns://:54').add(':2')
  const bad: readonly { given: string; why: string; events: readonly string[] }[] = [
    {
      given: 'x {',
      why: `${path}:1 - Syntax error: Unexpected token '{', expecting '}'`,
      events: [],
    },
    { given: 'x {\n a bad\n}', why: 'plugin/a', events: [] },
    {
      given: 'x {\n a nostart\n}',
      why: `${path}:2: plugin/a: cannot start`,
      events: ['setup a x.', 'start a x.', 'shutdown a x.'],
    },
    {
      given: 'x y:55 z:54 {\n a\n}',
      why: 'no dns://:54',
      events: [
        'setup a x.',
        'start a x.',
        'open dns dns://:55',
        'close dns dns://:55',
        'shutdown a x.',
      ],
    },
    {
      given: 'x {\n a http :2 /p\n}',
      why: 'no :2',
      events: ['setup a x.', 'start a x.', 'shutdown a x.'],
    },
  ]
  for (const { given, why, events: want } of bad) {
    events.length = 0
    lines.length = 0
    write(given)
    t.equal(await supervisor.reload(), false, given)
    t.equal(lines[0], '[INFO] Reloading')
    t.ok(lines[1]?.startsWith(`[ERROR] Restart failed: ${why}`), lines[1] ?? '')
    t.strictSame(events, want, given)
    t.equal(supervisor.plans[0]?.blocks[0]?.chain, chain)
  }
  write('x {\n b\n}')
  t.equal(await supervisor.reload(), true, 'and the next good one works')
})

t.test('a directive can ask for a reload, and see whether it would change something', async (t) => {
  const { source, write } = file(t, 'x {\n a\n}')
  const { supervisor, contexts } = stage(source)
  await supervisor.start()
  const corefile = contexts[0]?.corefile
  t.equal(corefile?.path, source.path)
  t.equal(corefile?.digest(), corefile?.loadedDigest)
  write('x {\n a # no change\n}')
  t.equal(corefile?.digest(), corefile?.loadedDigest)
  write('x {\n\n a\n}')
  t.not(corefile?.digest(), corefile?.loadedDigest)
  t.equal(await contexts[0]?.requestReload('changed'), '')
  t.equal(contexts[1]?.corefile.loadedDigest, corefile?.digest())
  write('x {')
  t.throws(() => corefile?.digest(), InputError)
  const why = 'Corefile:1 - Syntax error: Unexpected token'
  t.match(await contexts[1]?.requestReload('changed'), why, 'or why it failed')
})

t.test('a stop runs the final hooks while it still serves', async (t) => {
  const { supervisor, events } = stage(text('x {\n a http :1 /p\n}'))
  await supervisor.start()
  events.length = 0
  t.equal(await supervisor.stop(), 0)
  t.strictSame(events, ['final a x.', 'close dns dns://:53', 'close http :1', 'shutdown a x.'])
  t.equal(await supervisor.reload(), false, 'nothing starts again')
})

t.test('a stop does not wait for a start under way, which is taken down again', async (t) => {
  const { supervisor, events } = stage(text('x {\n a slow\n}'))
  const started = supervisor.start()
  await until(() => events.includes('start a x.'), 'the start')
  t.equal(await supervisor.stop(), 0)
  events.push('go on')
  await started
  t.equal(await supervisor.stop(), 0)
  t.strictSame(events.slice(-3), ['final a x.', 'close dns dns://:53', 'shutdown a x.'])
})

t.test('a stop with a failing hook runs the rest and says so', async (t) => {
  const { supervisor, events, lines } = stage(text('x {\n a nostop\n b\n}'))
  await supervisor.start()
  events.length = 0
  t.equal(await supervisor.stop(), 4)
  t.ok(events.includes('shutdown b x.'))
  t.strictSame(lines, ['[ERROR] Corefile:2: plugin/a: cannot stop'])
})

t.test('no server block at all is the default Corefile', async (t) => {
  const { supervisor } = stage(text('# nothing\n'))
  await t.rejects(supervisor.start(), { message: /Unknown directive 'whoami'/ })
})

t.test('`serving` runs once the sockets are open, and never if they do not open', async (t) => {
  const first = stage(text('x {\n a http :1 /p\n}\n'))
  await first.supervisor.start()
  t.match(first.serving, [/^a x\. after open /])
  await first.supervisor.reload()
  t.match(first.serving[1], /^a x\. after use /)
  const failing = stage(text('x {\n a http :1 /p\n}\n'), new Set([':1']))
  await t.rejects(failing.supervisor.start())
  t.strictSame(failing.serving, [])
})
