// The kernel's side of an AF_XDP socket in plain memory, for measurements of the other side.

/** Where a received frame starts in its chunk: the kernel's headroom, and ours. */
const FRAME_AT = 278
const PRODUCER = 0
const CONSUMER = 16
const FLAGS = 32
/** Of 32-bit words. */
const ENTRIES = 64
const NEED_WAKEUP = 1

class KernelRing {
  constructor(entries, entryWords) {
    this.words = new Int32Array(ENTRIES + entries * entryWords)
    this.words[FLAGS] = NEED_WAKEUP
    this.mask = entries - 1
    this.entryWords = entryWords
  }

  at(counter) {
    return ENTRIES + (counter & this.mask) * this.entryWords
  }

  put(frame, octets) {
    const at = this.at(this.words[PRODUCER])
    this.words[at] = frame
    if (this.entryWords === 4) this.words[at + 2] = octets
    this.words[PRODUCER]++
  }
}

export class PlainMemory {
  /** `xsk`, `ring`: the modules of the build that is measured. `queries`: frames, which arrive in turn. */
  constructor({ FRAME_OCTETS, FRAMES_OCTETS }, { RING_ENTRIES }, queries) {
    this.queries = queries
    this.next = 0
    this.frameOctets = FRAME_OCTETS
    this.octets = new Uint8Array(FRAMES_OCTETS)
    const words = [4, 4, 2, 2]
    const rings = words.map((entryWords) => new KernelRing(RING_ENTRIES, entryWords))
    const [rx, tx, fill, completion] = rings
    Object.assign(this, { rx, tx, fill, completion })
    for (let at = 0; at < FRAMES_OCTETS; at += FRAME_OCTETS) fill.put(at)
    const memories = new Map([
      [1, this.octets.buffer],
      ...rings.map((r, i) => [i + 2, r.words.buffer]),
    ])
    const place = (address) => ({
      address,
      octets: memories.get(address).byteLength,
      producer: PRODUCER * 4,
      consumer: CONSUMER * 4,
      flags: FLAGS * 4,
      entries: ENTRIES * 4,
    })
    this.place = {
      ...{ fd: 9, ifindex: 9, queue: 0, isZeroCopy: false },
      frames: { address: 1, octets: FRAMES_OCTETS },
      ...{ rx: place(2), tx: place(3), fill: place(4), completion: place(5) },
    }
    this.kernel = {
      view: (address) => memories.get(address),
      errno: () => 11,
      sendto: () => {
        tx.words[CONSUMER] = tx.words[PRODUCER]
        return 0
      },
    }
  }

  /** Completes what was sent, and lets up to `count` queries arrive. */
  deliver(count) {
    const { tx, fill, rx, completion } = this
    this.completed ??= 0
    for (; this.completed !== tx.words[CONSUMER]; this.completed++) {
      completion.put(tx.words[tx.at(this.completed)])
    }
    for (let i = 0; i < count && fill.words[CONSUMER] !== fill.words[PRODUCER]; i++) {
      const frame = fill.words[fill.at(fill.words[CONSUMER]++)]
      const query = this.queries[this.next]
      this.next = (this.next + 1) % this.queries.length
      this.octets.set(query, frame + FRAME_AT)
      rx.put(frame + FRAME_AT, query.length)
    }
  }

  get isServed() {
    return this.rx.words[CONSUMER] === this.rx.words[PRODUCER]
  }

  /** The frame that was sent last. */
  get lastSent() {
    const { tx } = this
    const at = tx.at(tx.words[PRODUCER] - 1)
    return this.octets.slice(tx.words[at], tx.words[at] + tx.words[at + 2])
  }
}

const word = (value) => [(value >> 8) & 255, value & 255]

/** A frame from `source`, 4 octets, with `message`. */
export function frameOf(source, port, message) {
  const udp = 8 + message.length
  const ip = [0x45, 0, ...word(20 + udp), 0, 0, 0x40, 0, 64, 17, 0, 0, ...source, 192, 0, 2, 1]
  let sum = 0
  for (let i = 0; i < 20; i += 2) sum += ip[i] * 256 + ip[i + 1]
  sum = (sum & 0xffff) + (sum >>> 16)
  ip.splice(10, 2, ...word(~((sum & 0xffff) + (sum >>> 16))))
  const ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]
  return Uint8Array.from([...ethernet, ...ip, ...word(port), 0, 53, ...word(udp), 0, 0, ...message])
}
