import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { escapeControls } from '../../src/base/telemetry/log.ts'
import { check } from '../../src/cli/check.ts'
import { lineBufferTo } from '../support/line-buffer.ts'

/** Directives without addresses to resolve or clusters to ask, in every form that they have. */
const COREFILE = `(common) {
  errors
  log . "{remote} {name}" {
    class denial error
  }
}
import common.conf
a.example.org:1053 b.example.org {
  import common
  bind 127.0.0.1
  root DIR
  acl {
    allow net 10.0.0.0/8
    block type ANY net *
  }
  any
  bufsize 1232
  chaos v1 "an author"
  header {
    response set aa
  }
  file db.zone a.example.org {
    reload 30s
  }
  hosts hosts.txt {
    10.0.0.1 x.a.example.org
    ttl 60
    fallthrough
  }
  loadbalance round_robin
  minimal
  nsid {$HOME}
  tsig {
    secret key. c2VjcmV0c2VjcmV0
    require all
  }
  whoami
}
example.net {
  view v4 {
    expr incidr(client_ip(), '10.0.0.0/8') && type() in ['A', 'AAAA']
  }
  auto {
    directory DIR db\\.(.*) {1}
    reload 1m
  }
  local
  metadata
  rrl {
    responses-per-second 10
  }
  transfer {
    to 127.0.0.1:5301
  }
}
`
const ZONE = '@ 3600 IN SOA ns hostmaster 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n'
const TOKENS = [
  ...[
    '{',
    '}',
    '"',
    '\\',
    '#',
    '\n',
    ' ',
    '\t',
    '\0',
    '\r',
    '\ufeff',
    '\ufffd',
    '\u2028',
    '\u001b[31m',
    'import a\0b',
  ],
  ...[
    'import',
    'import *',
    'import DIR',
    '(a)',
    '{$X}',
    '{%X%}',
    '{$',
    '../..',
    '/dev/null',
    '*',
    '[',
    '(',
  ],
  ...[
    '-1',
    '0',
    '99999999999999999999',
    '1e9',
    '0x10',
    '::1',
    '127.0.0.1:99999',
    '1.2.3.4/33',
    'NaN',
  ],
  ...['__proto__', 'constructor', 'a..b', '.', 'x'.repeat(300), '\u00e4', '\u{1f600}'],
]

/** A change: drops, doubles, replaces or inserts at a place that is a fraction of the text. */
const CHANGE = fc.record({
  how: fc.constantFrom('drop', 'double', 'replace', 'insert', 'swap'),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  token: fc.oneof(fc.constantFrom(...TOKENS), fc.string({ unit: 'binary', maxLength: 4 })),
})
type Change = typeof CHANGE extends fc.Arbitrary<infer T> ? T : never

function mutate(text: string, { how, at, token }: Change): string {
  const words = text.split(/(?<=[ \n])/)
  const i = Math.min(words.length - 1, Math.floor(at * words.length))
  const word = words[i] ?? ''
  if (how === 'drop') words.splice(i, 1)
  else if (how === 'double') words.splice(i, 0, word)
  else if (how === 'replace') words.splice(i, 1, `${token} `)
  else if (how === 'swap') words.splice(i, 2, words[i + 1] ?? '', word)
  else words.splice(i, 1, word.slice(0, 1) + token + word.slice(1))
  return words.join('')
}

t.test('no change of a good Corefile makes check fail otherwise than with a fault', async (t) => {
  const directory = t.testdir({
    'db.zone': ZONE,
    'db.x.example.net': ZONE,
    'hosts.txt': '10.0.0.2 y.a.example.org\n',
    'common.conf': '# nothing\n',
    Corefile: '',
  })
  const run = async (text: string): Promise<{ code: number; printed: string[] }> => {
    const printed: string[] = []
    const print = (line: string): void => void printed.push(line)
    const output = {
      lines: lineBufferTo(printed),
      print,
      printError: (line: string) => print(escapeControls(line)),
      flush: () => {},
    }
    const path = join(directory, 'Corefile')
    writeFileSync(path, text.replaceAll('DIR', directory))
    return { code: await check(['-conf', path, '--offline'], output), printed }
  }
  const good = await run(COREFILE)
  for (const odd of ['import "a\0b"\n', 'import a\0b\n', '. {\n file "a\0b"\n}\n', '\0\n']) {
    const { code, printed } = await run(odd)
    t.equal(code, 1, encodeURI(odd))
    t.match(printed, [/NUL character/])
  }
  t.equal(good.code, 0, good.printed.join('\n'))
  const changes = fc.array(CHANGE, { minLength: 1, maxLength: 3 })
  let refused = 0
  const property = fc.asyncProperty(changes, async (list) => {
    const { code, printed } = await run(list.reduce(mutate, COREFILE))
    if (code === 1) refused++
    // Each fault is a line, and no line is of a stack.
    if (
      printed.length === 0 ||
      printed.some((line) => /^\s+at |[\p{Cc}\u2028\u2029]/u.test(line))
    ) {
      throw new Error(printed.map(escapeControls).join(' | '))
    }
    return code === 0 || code === 1
  })
  await fc.assert(property, { seed: 23, numRuns: Number(process.env.SEXTANT_MUTATIONS ?? 150) })
  t.ok(refused > 20, `${refused} were refused`)
  t.equal(readFileSync(join(directory, 'db.zone'), 'utf8'), ZONE)
})
