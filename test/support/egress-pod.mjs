/*
 * A program in the network namespace of a Pod. It reads one request per line from standard input, as JSON with an `id`, and
 * writes one line per result with the same `id`:
 *
 *     connect  to address:port by protocol   'open' | 'dropped' | 'refused' ...
 *     open     as connect, the connection stays open as `name`
 *     echo     on the open connection `name` 'open' | 'dropped' | 'closed'
 *     resolve  name, type, at server         { rcode, addresses }
 *     visit    resolve, and connect to the first address in the same turn
 *     retransmits                            TCP segments that were sent again in this namespace
 */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { createInterface } from 'node:readline'

const open = new Map()
let sent = 0

/** Sends a token; resolves when it is back. */
function echoTcp(socket, timeoutMs) {
  return new Promise((resolve) => {
    const token = `token ${++sent};`
    let text = ''
    const end = (result) => {
      clearTimeout(timer)
      socket.off('data', read)
      socket.off('close', close)
      resolve(result)
    }
    const read = (data) => {
      text += data
      if (text.endsWith(token)) end('open')
    }
    const close = () => end('closed')
    const timer = setTimeout(() => end('dropped'), timeoutMs)
    socket.on('data', read)
    socket.on('close', close)
    socket.write(token)
  })
}

function openTcp({ address, port, timeoutMs }) {
  return new Promise((resolve) => {
    const socket = connectTcp({ host: address, port })
    const end = (result) => {
      clearTimeout(timer)
      socket.off('error', fail)
      socket.on('error', () => {})
      if (result !== 'open') socket.destroy()
      resolve({ result, socket })
    }
    const fail = (error) => end(error.code === 'ECONNREFUSED' ? 'refused' : error.code)
    const timer = setTimeout(() => end('dropped'), timeoutMs)
    socket.on('error', fail)
    socket.on('connect', () => end('open'))
  })
}

function echoUdp(socket, { address, port, timeoutMs }) {
  return new Promise((resolve) => {
    const token = `token ${++sent}`
    const end = (result) => {
      clearTimeout(timer)
      clearInterval(again)
      socket.off('message', read)
      resolve(result)
    }
    const read = (data) => String(data) === token && end('open')
    const send = () => socket.send(token, port, address)
    const timer = setTimeout(() => end('dropped'), timeoutMs)
    // The first one may be lost while the neighbour is looked up.
    const again = setInterval(send, 100)
    socket.on('message', read)
    send()
  })
}

function udpSocket(address) {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  socket.on('error', () => {})
  return socket
}

const requests = {
  async connect(request) {
    if (request.protocol === 'udp') {
      const socket = udpSocket(request.address)
      const result = await echoUdp(socket, request)
      socket.close()
      return result
    }
    const { result, socket } = await openTcp(request)
    if (result !== 'open') return result
    const echo = await echoTcp(socket, request.timeoutMs)
    socket.destroy()
    return echo
  },
  async open(request) {
    const { name, protocol, address, timeoutMs } = request
    if (protocol === 'udp') {
      const socket = udpSocket(address)
      open.set(name, (timeoutMs) => echoUdp(socket, { ...request, timeoutMs }))
    } else {
      const { result, socket } = await openTcp(request)
      if (result !== 'open') return result
      open.set(name, (timeoutMs) => echoTcp(socket, timeoutMs))
    }
    return open.get(name)(timeoutMs)
  },
  echo({ name, timeoutMs }) {
    return open.get(name)(timeoutMs)
  },
  async resolve({ name, type, server }) {
    const resolver = new Resolver({ timeout: 5000, tries: 4 })
    resolver.setServers([server])
    try {
      return { rcode: 'NOERROR', addresses: (await resolver.resolve(name, type)).sort() }
    } catch ({ code }) {
      return { rcode: code, addresses: [] }
    }
  },
  async visit(request) {
    const found = await requests.resolve(request)
    if (found.addresses.length === 0) return { ...found, result: 'unresolved', retransmits: 0 }
    const before = requests.retransmits()
    const result = await requests.connect({ ...request, address: found.addresses[0] })
    return { ...found, result, retransmits: requests.retransmits() - before }
  },
  retransmits() {
    const [names, values] = readFileSync('/proc/net/snmp', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('Tcp:'))
      .map((line) => line.split(' '))
    return Number(values[names.indexOf('RetransSegs')])
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, ...request } = JSON.parse(line)
  Promise.resolve(requests[op](request)).then(
    (result) => console.log(JSON.stringify({ id, result })),
    (error) => console.log(JSON.stringify({ id, error: String(error.stack) })),
  )
}
process.exit()
