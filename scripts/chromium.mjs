#!/usr/bin/env node
// Finds Chromium for the journeys in a browser, or installs it on Debian as root. Exit code 1, and why, where neither works.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const places = [process.env.CORRAL_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const find = () => places.find((path) => path && existsSync(path))
const say = (text) => process.stderr.write(`chromium: ${text}\n`)

if (!find()) install()
const path = find()
if (path) say(path)
else {
  say('there is none and it cannot be installed here; name one with CORRAL_CHROMIUM=PATH')
  process.exitCode = 1
}

function install() {
  if (!existsSync('/etc/debian_version') || process.getuid() !== 0) return
  say('installing (apt-get install chromium)')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = 'apt-get -o DPkg::Lock::Timeout=300'
  const attempt = () =>
    spawnSync('sh', ['-c', `${apt} install -y --no-install-recommends chromium`], { env, stdio: 'ignore' }).status === 0
  if (attempt()) return
  spawnSync('sh', ['-c', `${apt} update -qq`], { env, stdio: 'ignore' })
  attempt()
}
