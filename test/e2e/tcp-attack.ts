import { connect, type Socket } from 'node:net'
import { Random } from '../../src/base/random.ts'
import { composeQuery } from '../support/client.ts'

/*
 * A process that attacks a server over TCP, or that asks it as an honest client, in the network namespace in which it runs:
 *
 *     node tcp-attack.ts '{"port":53,"kinds":["idle"],"from":["127.1.0.1"],"each":100}'
 *
 * An attack prints "ready" when it has tried each of its connections once, and goes on until it is ended. Honest clients
 * print {"asked":…,"answered":…} and end.
 */
export interface AttackPlan {
  readonly port: number
  /** Empty: honest clients, which ask `each` questions per address. */
  readonly kinds: readonly Kind[]
  /** Addresses of clients. */
  readonly from: readonly string[]
  /** Connections that an address wants to have open. */
  readonly each: number
}

export interface Outcome {
  asked: number
  answered: number
  readonly failures: string[]
}

const NAME = 'long.z.example'
/** When a connection that was cut is opened again. */
const RETRY_MS = 500
const OPENINGS_PER_TICK = 100
const TICK_MS = 20
/** What a client waits for an answer: two lost SYNs, on a busy machine. */
const PATIENCE_MS = 15_000

const frame = (message: Uint8Array): Buffer =>
  Buffer.concat([Buffer.of(message.length >> 8, message.length & 0xff), message])
const QUERY = frame(composeQuery({ name: NAME, type: 'TXT' }, 1))
const TRANSFER = frame(composeQuery({ name: 'z.example', type: 'AXFR' }, 1))
const MANY = Buffer.concat(Array.from({ length: 50 }, () => QUERY))
const TRANSFERS = Buffer.concat(Array.from({ length: 50 }, () => TRANSFER))
/** Messages that no reply is due to: QR is set. */
const REPLIES = Buffer.concat(
  Array.from({ length: 50 }, () => {
    const reply = Buffer.from(QUERY)
    reply[4]! |= 0x80
    return reply
  }),
)
const LONGEST = frame(Buffer.alloc(0xffff, 0x3f))

/** Does `act` now and then while the connection is open. */
function repeat(socket: Socket, everyMs: number, act: () => void): void {
  const timer = setInterval(() => (socket.writableNeedDrain ? undefined : act()), everyMs)
  socket.on('close', () => clearInterval(timer))
}

/** What an attacker does with a connection that is open. */
const KINDS = {
  idle: () => {},
  'close at once': (socket) => socket.resetAndDestroy(),
  'one query, then reset': (socket) => {
    socket.write(QUERY)
    setTimeout(() => socket.resetAndDestroy(), 50)
  },
  'one octet at a time': (socket) => {
    socket.write(Buffer.of(0xff, 0xff))
    repeat(socket, 100, () => socket.write(Buffer.of(0)))
  },
  'half a message': (socket) => socket.write(QUERY.subarray(0, QUERY.length >> 1)),
  'a query now and then': (socket) => {
    socket.resume()
    socket.write(QUERY)
    repeat(socket, 400, () => socket.write(QUERY))
  },
  'many queries': (socket) => {
    socket.resume()
    repeat(socket, 400, () => socket.write(MANY))
  },
  'many queries, replies unread': (socket) => {
    socket.pause()
    socket.write(MANY)
    repeat(socket, 100, () => socket.write(MANY))
  },
  'messages of no octets': (socket) => {
    socket.write(Buffer.alloc(20_000))
    repeat(socket, 10, () => socket.write(Buffer.alloc(20_000)))
  },
  'short messages': (socket) => {
    socket.write(frame(Buffer.alloc(11)))
    repeat(socket, 10, () => socket.write(frame(Buffer.alloc(11))))
  },
  'a transfer, unread': (socket) => {
    socket.pause()
    socket.write(TRANSFER)
  },
  'a transfer, read slowly': (socket) => {
    socket.pause()
    socket.write(TRANSFER)
    repeat(socket, 100, () => socket.read(1000))
  },
  'half a length': (socket) => socket.write(Buffer.of(0)),
  'end of file at once': (socket) => socket.end(),
  'many queries and end of file, replies unread': (socket) => {
    socket.pause()
    socket.end(Buffer.concat(Array.from({ length: 20 }, () => MANY)))
  },
  'replies read slowly': (socket) => {
    socket.pause()
    socket.write(MANY)
    repeat(socket, 100, () => {
      socket.read(100)
      socket.write(QUERY)
    })
  },
  'messages without a reply': (socket) => {
    socket.resume()
    repeat(socket, 100, () => socket.write(REPLIES))
  },
  'the longest messages': (socket) => {
    socket.resume()
    repeat(socket, 200, () => socket.write(LONGEST))
  },
  'many transfers and queries behind them': (socket) => {
    socket.resume()
    socket.write(TRANSFERS)
    repeat(socket, 400, () => socket.write(MANY))
  },
} satisfies Readonly<Record<string, (socket: Socket) => void>>
export type Kind = keyof typeof KINDS
export const ATTACKS = Object.keys(KINDS) as Kind[]

const serverOf = (from: string): string => (from.includes(':') ? '::1' : '127.0.0.1')

function attack({ port, kinds, from, each }: AttackPlan): void {
  const random = new Random(1)
  // Sockets that are not read keep no event loop going.
  setInterval(() => {}, RETRY_MS)
  let untried = from.length * each
  const open = (localAddress: string): void => {
    let isTried = false
    const settle = (): void => {
      if (!isTried && --untried === 0) process.stdout.write('ready\n')
      isTried = true
    }
    const again = (): void => {
      if (isTried) setTimeout(reopen, RETRY_MS * (1 + random.below(100) / 100))
    }
    const reopen = (): void => {
      const act: (socket: Socket) => void = KINDS[kinds[random.below(kinds.length)]!]
      const options = { port, host: serverOf(localAddress), localAddress }
      const socket = connect({ ...options, noDelay: true, allowHalfOpen: true })
      socket.on('error', () => {})
      socket.on('connect', () => {
        settle()
        act(socket)
      })
      socket.on('end', () => socket.end())
      socket.on('close', () => {
        settle()
        again()
      })
    }
    reopen()
  }
  const all = Array.from({ length: each }, () => from).flat()
  const timer = setInterval(() => {
    for (const address of all.splice(0, OPENINGS_PER_TICK)) open(address)
    if (all.length === 0) clearInterval(timer)
  }, TICK_MS)
}

/** Asks `count` questions over one connection, each when the one before is answered; how many were, and why not all. */
function ask(port: number, localAddress: string, count: number): Promise<[number, string]> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: serverOf(localAddress), localAddress })
    let got = Buffer.alloc(0)
    let answered = 0
    let why = 'ended'
    const timer = setTimeout(() => socket.destroy(new Error('no answer in time')), PATIENCE_MS)
    socket.on('connect', () => socket.write(QUERY))
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk])
      if (got.length < 2 || got.length < 2 + got.readUInt16BE(0)) return
      got = got.subarray(2 + got.readUInt16BE(0))
      answered++
      if (answered < count) socket.write(QUERY)
      else socket.destroy()
    })
    socket.on('error', (error) => {
      why = error.message
    })
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(timer)
      resolve([answered, answered < count ? `${localAddress}: ${why}` : ''])
    })
  })
}

/** Each address asks over connections of its own, one question or five over each. */
async function beHonest({ port, from, each }: AttackPlan): Promise<void> {
  const outcome: Outcome = { asked: 0, answered: 0, failures: [] }
  const run = async (address: string, perConnection: number): Promise<void> => {
    for (let left = each; left > 0; left -= perConnection) {
      const count = Math.min(left, perConnection)
      const [answered, why] = await ask(port, address, count)
      outcome.asked += count
      outcome.answered += answered
      if (why !== '') outcome.failures.push(why)
    }
  }
  await Promise.all(from.map((address, i) => run(address, i % 2 === 0 ? 1 : 5)))
  process.stdout.write(`${JSON.stringify(outcome)}\n`)
}

const [, , plan] = process.argv
if (plan?.startsWith('{')) {
  const read = JSON.parse(plan) as AttackPlan
  if (read.kinds.length > 0) attack(read)
  else void beHonest(read)
}
