import t from 'tap'
import { needs, run } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

const SECRET = 'NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='
const ALGORITHMS = ['hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512']
const CLIENTS = ['dig', 'kdig']
/** What either says of a reply whose signature it does not like. */
const COMPLAINT = /verif|validated|failed|;; ERROR/i

const corefile = `example.org:{PORT} {
    bind 127.0.0.1
    tsig {
        secret k.example. ${SECRET}
        require AXFR
    }
    transfer {
        to 127.0.0.1
    }
    file db
}
`
const many = Array.from({ length: 3000 }, (_, i) => `n${i} 60 TXT "${'x'.repeat(40)}"\n`).join('')
const FILES = { db: `@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\nwww 60 A 192.0.2.1\n${many}` }

t.test('dig and kdig take our signatures, and we theirs', needs(...CLIENTS), async (t) => {
  const server = await startServer(t, { corefile, files: FILES })
  const ask = async (client: string, key: string, ...args: string[]): Promise<string> => {
    const own = client === 'dig' ? ['+tries=1', '+nocookie', '+nocmd'] : ['+retry=0']
    const at = ['@127.0.0.1', '-p', String(server.port), '-y', key]
    const { stdout, stderr } = await run(client, [...at, '+time=50', ...own, ...args])
    return stdout + stderr
  }
  for (const client of CLIENTS) {
    for (const algorithm of ALGORITHMS) {
      const key = `${algorithm}:k.example.:${SECRET}`
      for (const how of ['+notcp', '+tcp']) {
        const text = await ask(client, key, how, 'www.example.org', 'A')
        t.match(text, /status: NOERROR/, `${client} ${algorithm} ${how}`)
        t.match(text, '192.0.2.1')
        t.notMatch(text, COMPLAINT)
      }
      const zone = await ask(client, key, 'example.org', 'AXFR')
      t.equal(
        zone.split('\n').filter((line) => line.includes(' "xxxx') || line.includes('\t"xxxx'))
          .length,
        3000,
      )
      t.notMatch(zone, COMPLAINT, `${client} ${algorithm} AXFR`)
    }
    const wrong = await ask(
      client,
      `hmac-sha256:k.example.:${SECRET.replace('No', 'Ao')}`,
      'www.example.org',
    )
    t.match(wrong, /status: (?:NOTAUTH|BADSIG)/)
    t.match(wrong, /BADSIG/)
    const unknown = await ask(client, `hmac-sha256:other.example.:${SECRET}`, 'www.example.org')
    t.match(unknown, /status: (?:NOTAUTH|BADKEY)/)
    t.match(unknown, /BADKEY/)
  }
})
