#!/usr/bin/env node

// Before anything else is loaded: without a handler Node opens its debugger on SIGUSR1, and a reload may
// be asked for at any moment.
process.on('SIGUSR1', () => {})
const { main } = await import('./cli/main.ts')
await main(process.argv.slice(2))
