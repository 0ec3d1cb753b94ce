'use strict';
// One telling use of each of Node's own modules: `node node_core.cjs OUT`, as a job and bare.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');

async function listening(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

const checks = {
  async fs_files() {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'x-'));
    const file = path.join(dir, 'a');
    fs.writeFileSync(file, 'hello');
    await fs.promises.appendFile(file, ' world');
    assert.equal(await fs.promises.readFile(file, 'utf8'), 'hello world');
    fs.linkSync(file, `${file}2`);
    fs.symlinkSync('a', `${file}3`);
    assert.equal(fs.statSync(file).nlink, 2);
    fs.chmodSync(file, 0o640);
    fs.utimesSync(file, 1, 2);
    assert.equal(fs.statSync(`${file}3`).mtimeMs, 2000);
    fs.copyFileSync(file, `${file}4`, fs.constants.COPYFILE_FICLONE);
    fs.cpSync(dir, `${dir}-copy`, { recursive: true });
    fs.truncateSync(file, 3);
    fs.renameSync(file, path.join(`${dir}-copy`, 'moved'));
    assert.deepEqual(fs.readdirSync(dir, { recursive: true }).sort(), ['a2', 'a3', 'a4']);
    fs.rmSync(dir, { recursive: true });
    assert.ok(fs.statfsSync('.').bsize > 0);
  },
  async fs_promises_handle() {
    const handle = await fs.promises.open('h', 'w+');
    await handle.write('a\nb\n');
    await handle.sync();
    const lines = [];
    for await (const line of handle.readLines({ start: 0 })) lines.push(line);
    assert.deepEqual(lines, ['a', 'b']);
  },
  async fs_watch_workspace() {
    const watcher = fs.watch('.');
    const seen = once(watcher, 'change');
    fs.writeFileSync('watched', 'x');
    await Promise.race([seen, sleep(20000, null, { ref: false }).then(() => assert.fail('nothing seen'))]);
    watcher.close();
  },
  async fs_watch_tmp_recursive() {
    const dir = fs.mkdtempSync('/tmp/w-');
    const watcher = fs.watch(dir, { recursive: true });
    const seen = once(watcher, 'change');
    fs.mkdirSync(`${dir}/sub`);
    await Promise.race([seen, sleep(20000, null, { ref: false }).then(() => assert.fail('nothing seen'))]);
    watcher.close();
  },
  async streams() {
    const { pipeline } = require('node:stream/promises');
    const zlib = require('node:zlib');
    const { Readable } = require('node:stream');
    const parts = Array.from({ length: 1000 }, (_, i) => `line ${i}\n`);
    await pipeline(Readable.from(parts), zlib.createGzip(), fs.createWriteStream('s.gz'));
    const chunks = [];
    for await (const chunk of fs.createReadStream('s.gz').pipe(zlib.createGunzip())) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), parts.join(''));
    const stream = new ReadableStream({ start: (c) => (c.enqueue('a'), c.close()) });
    assert.equal(await new Response(stream.pipeThrough(new TextEncoderStream())).text(), 'a');
  },
  async zlib_all() {
    const zlib = require('node:zlib');
    const data = Buffer.from('x'.repeat(10000));
    assert.deepEqual(zlib.brotliDecompressSync(zlib.brotliCompressSync(data)), data);
    assert.deepEqual(zlib.inflateSync(zlib.deflateSync(data)), data);
    assert.equal(zlib.crc32('hello'), 907060870);
  },
  async child_process_exec() {
    const cp = require('node:child_process');
    const { promisify } = require('node:util');
    assert.equal((await promisify(cp.exec)('echo $((6*7))')).stdout, '42\n');
    assert.equal(cp.spawnSync('sh', ['-c', 'exit 7']).status, 7);
    assert.equal(cp.spawnSync('sleep', ['5'], { timeout: 50 }).signal, 'SIGTERM');
    const child = cp.spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end('through');
    assert.equal(String((await once(child.stdout, 'data'))[0]), 'through');
    const detached = cp.spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
    process.kill(-detached.pid, 'SIGKILL');
    assert.equal((await once(detached, 'exit'))[1], 'SIGKILL');
  },
  async child_process_fork() {
    const cp = require('node:child_process');
    fs.writeFileSync('child.cjs', 'process.on("message", (m) => process.send(m.map((x) => x * 2n), () => process.exit(3)))');
    const child = cp.fork('./child.cjs', { serialization: 'advanced' });
    child.send([1n, 2n]);
    const exit = once(child, 'exit');
    assert.deepEqual((await once(child, 'message'))[0], [2n, 4n]);
    assert.equal((await exit)[0], 3);
  },
  async worker_threads() {
    const { Worker, MessageChannel } = require('node:worker_threads');
    const shared = new Int32Array(new SharedArrayBuffer(4));
    const code = `const { parentPort, workerData } = require("worker_threads");
      Atomics.add(workerData, 0, 41); Atomics.notify(workerData, 0);
      parentPort.once("message", (p) => p.postMessage(require("os").EOL))`;
    const workers = Array.from({ length: 4 }, () => new Worker(code, { eval: true, workerData: shared }));
    for (const worker of workers) {
      const { port1, port2 } = new MessageChannel();
      worker.postMessage(port2, [port2]);
      assert.equal((await once(port1, 'message'))[0], '\n');
      port1.close();
    }
    assert.equal(shared[0], 164);
  },
  async cluster() {
    const cp = require('node:child_process');
    fs.writeFileSync(
      'cluster.cjs',
      `const cluster = require("node:cluster"), http = require("node:http");
       if (cluster.isPrimary) {
         cluster.fork(); cluster.fork(); let n = 0;
         cluster.on("listening", async (worker, address) => {
           if (++n < 2) return;
           const answers = [];
           for (let i = 0; i < 4; i++) answers.push(await (await fetch("http://127.0.0.1:" + address.port)).text());
           console.log(answers.every((a) => a === "ok")); process.exit(0);
         });
       } else http.createServer((q, r) => { r.setHeader("connection", "close"); r.end("ok"); }).listen(8231, "127.0.0.1");`,
    );
    assert.equal(cp.execFileSync(process.execPath, ['cluster.cjs'], { encoding: 'utf8' }), 'true\n');
  },
  async http_and_fetch() {
    const http = require('node:http');
    const server = http.createServer(async (request, response) => {
      for await (const chunk of request) response.write(String(chunk).toUpperCase());
      response.end();
    });
    const url = `http://127.0.0.1:${await listening(server)}`;
    assert.equal(await (await fetch(url, { method: 'POST', body: 'abc' })).text(), 'ABC');
    const localhost = url.replace('127.0.0.1', 'localhost');
    assert.equal(await (await fetch(localhost, { method: 'POST', body: 'def' })).text(), 'DEF');
    server.closeAllConnections();
    server.close();
  },
  async http2() {
    const http2 = require('node:http2');
    const server = http2.createServer();
    server.on('stream', (stream) => stream.end('two'));
    const client = http2.connect(`http://127.0.0.1:${await listening(server)}`);
    const request = client.request({ ':path': '/' });
    request.setEncoding('utf8');
    let text = '';
    for await (const part of request) text += part;
    assert.equal(text, 'two');
    client.close();
    server.close();
  },
  async fetch_outside_fails() {
    await assert.rejects(fetch('http://192.0.2.1/', { signal: AbortSignal.timeout(5000) }));
  },
  async dns() {
    const dns = require('node:dns');
    const { address } = await dns.promises.lookup('localhost');
    assert.ok(['127.0.0.1', '::1'].includes(address));
    await assert.rejects(dns.promises.lookup('example.com'));
  },
  async net_sockets() {
    const net = require('node:net');
    const server = net.createServer((socket) => socket.pipe(socket));
    const socket = net.connect(await listening(server), '127.0.0.1');
    socket.setNoDelay(true).setKeepAlive(true);
    socket.write('ping');
    assert.equal(String((await once(socket, 'data'))[0]), 'ping');
    socket.destroy();
    server.close();
    const unix = net.createServer((s) => s.end('unix')).listen('/tmp/n.sock');
    await once(unix, 'listening');
    assert.equal(String((await once(net.connect('/tmp/n.sock'), 'data'))[0]), 'unix');
    unix.close();
  },
  async net_reset() {
    const net = require('node:net');
    const server = net.createServer();
    const accepted = once(server, 'connection');
    const socket = net.connect(await listening(server), '127.0.0.1');
    const [peer] = await accepted;
    if (socket.connecting) await once(socket, 'connect');
    const failed = once(peer, 'error').then(([error]) => error.code);
    peer.resume();
    socket.resetAndDestroy();
    server.close();
    assert.equal(await Promise.race([failed, once(peer, 'end').then(() => 'an orderly end')]), 'ECONNRESET');
  },
  async net_ipv6() {
    const net = require('node:net');
    const server = net.createServer((s) => s.end('six')).listen(0, '::1');
    await once(server, 'listening');
    assert.equal(String((await once(net.connect(server.address().port, '::1'), 'data'))[0]), 'six');
    server.close();
  },
  async dgram() {
    const dgram = require('node:dgram');
    const a = dgram.createSocket('udp4');
    a.bind(0, '127.0.0.1');
    await once(a, 'listening');
    const b = dgram.createSocket('udp4');
    b.send('x', a.address().port, '127.0.0.1');
    assert.equal(String((await once(a, 'message'))[0]), 'x');
    a.close();
    b.close();
  },
  async tls() {
    const tls = require('node:tls');
    assert.ok(tls.rootCertificates.length > 50);
    const { X509Certificate } = require('node:crypto');
    assert.ok(new X509Certificate(tls.rootCertificates[0]).subject);
    assert.ok(fs.readFileSync('/etc/ssl/certs/ca-certificates.crt', 'utf8').includes('BEGIN CERTIFICATE'));
  },
  async crypto() {
    const crypto = require('node:crypto');
    assert.equal(crypto.createHash('sha256').update('a').digest('hex').slice(0, 8), 'ca978112');
    const { privateKey, publicKey } = crypto.generateKeyPairSync('ed25519');
    assert.ok(crypto.verify(null, Buffer.from('m'), publicKey, crypto.sign(null, Buffer.from('m'), privateKey)));
    assert.equal(crypto.scryptSync('p', 's', 32).length, 32);
    assert.match(crypto.randomUUID(), /^[0-9a-f-]{36}$/);
    const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt']);
    assert.ok(await crypto.subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, key, new Uint8Array(4)));
  },
  async wasm() {
    const code = Buffer.from('0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b', 'hex');
    const { instance } = await WebAssembly.instantiate(code);
    assert.equal(instance.exports.add(40, 2), 42);
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 100 });
    memory.grow(10);
    assert.equal(memory.buffer.byteLength, 11 * 65536);
  },
  async wasi() {
    const { WASI } = require('node:wasi');
    assert.ok(new WASI({ version: 'preview1' }).wasiImport.fd_write);
  },
  async vm() {
    const vm = require('node:vm');
    assert.equal(vm.runInNewContext('a * 2', { a: 21 }), 42);
    assert.throws(() => vm.runInNewContext('for (;;);', {}, { timeout: 50 }), /timed out/);
  },
  async async_hooks() {
    const { AsyncLocalStorage } = require('node:async_hooks');
    const storage = new AsyncLocalStorage();
    assert.equal(await storage.run(5, async () => (await sleep(1), storage.getStore())), 5);
  },
  async timers() {
    const begun = performance.now();
    await sleep(30);
    assert.ok(performance.now() - begun >= 29);
    await new Promise((done) => setImmediate(done));
    let n = 0;
    await new Promise((done) => {
      const timer = setInterval(() => ++n === 3 && (clearInterval(timer), done()), 2);
    });
  },
  async url() {
    assert.equal(new URL('../b?x=ü', 'http://h/a/c').href, 'http://h/b?x=%C3%BC');
    assert.equal(require('node:url').fileURLToPath('file:///a%20b'), '/a b');
    assert.equal(new URL('http://münchen.example').hostname, 'xn--mnchen-3ya.example');
  },
  async perf_hooks() {
    const { monitorEventLoopDelay, PerformanceObserver } = require('node:perf_hooks');
    const delay = monitorEventLoopDelay();
    delay.enable();
    await sleep(20);
    assert.ok(delay.max >= 0);
    assert.ok(PerformanceObserver.supportedEntryTypes.includes('mark'));
  },
  async diagnostics() {
    const v8 = require('node:v8');
    assert.ok(v8.getHeapStatistics().heap_size_limit > 0);
    assert.deepEqual(v8.deserialize(v8.serialize(new Map([[1, 2]]))), new Map([[1, 2]]));
    assert.ok(process.report.getReport().header.nodejsVersion);
    assert.ok(process.resourceUsage().maxRSS > 0);
  },
  async inspector() {
    const { Session } = require('node:inspector/promises');
    const session = new Session();
    session.connect();
    assert.equal((await session.post('Runtime.evaluate', { expression: '6 * 7' })).result.value, 42);
    session.disconnect();
  },
  async test_runner() {
    const cp = require('node:child_process');
    fs.writeFileSync('t.test.cjs', 'require("node:test").test("good", () => {}); require("node:test").test("bad", () => { throw 1 });');
    const ran = cp.spawnSync(process.execPath, ['--test', 't.test.cjs'], { encoding: 'utf8' });
    assert.equal(ran.status, 1);
    assert.match(ran.stdout, /pass 1\n[^]*fail 1\n/);
  },
  async sqlite() {
    const { DatabaseSync } = require('node:sqlite');
    const db = new DatabaseSync('n.db');
    db.exec('pragma journal_mode=wal; create table t(a); insert into t values (41), (1)');
    assert.equal(db.prepare('select sum(a) as s from t').get().s, 42);
  },
  async readline() {
    const readline = require('node:readline');
    const { Readable } = require('node:stream');
    const lines = [];
    for await (const line of readline.createInterface({ input: Readable.from(['a\nb']) })) lines.push(line);
    assert.deepEqual(lines, ['a', 'b']);
  },
  async process_facts() {
    assert.equal(process.cwd(), '/workspace');
    assert.equal(os.userInfo().username, 'sandbox');
    assert.equal(os.hostname(), 'clouisle-sandbox');
    assert.ok(os.cpus().length >= 1 && os.totalmem() > os.freemem());
    assert.ok(os.uptime() > 0 && os.loadavg().length === 3);
    assert.equal(process.getuid(), 1000);
    process.title = 'renamed';
    os.setPriority(5);
    process.umask(0o077);
  },
  async os_network_interfaces() {
    assert.ok(os.networkInterfaces().lo);
  },
  async signals() {
    const got = once(process, 'SIGUSR2');
    process.kill(process.pid, 'SIGUSR2');
    await got;
  },
  async intl() {
    assert.equal(new Intl.NumberFormat('de').format(1234.5), '1.234,5');
    assert.equal(new Date(0).toLocaleDateString('ja-JP', { timeZone: 'Asia/Tokyo' }), '1970/1/1');
    assert.deepEqual(['ä', 'z', 'a'].sort(new Intl.Collator('de').compare), ['a', 'ä', 'z']);
  },
  async modules() {
    fs.writeFileSync('m.mjs', 'export const here = import.meta.dirname; export default await Promise.resolve(1);');
    assert.equal((await import('/workspace/m.mjs')).here, '/workspace');
    fs.writeFileSync('d.json', '{"a": 1}');
    assert.equal((await import('/workspace/d.json', { with: { type: 'json' } })).default.a, 1);
    assert.ok(require('node:module').builtinModules.length > 50);
  },
  async permission_and_types() {
    const cp = require('node:child_process');
    const none = cp.spawnSync(process.execPath, ['--permission', '-e', 'require("fs").readFileSync("/etc/passwd")']);
    assert.equal(none.status, 1);
    const typed = cp.spawnSync(process.execPath, ['--experimental-strip-types', '--input-type=module-typescript', '-e', 'const a: number = 1; console.log(a)']);
    assert.equal(String(typed.stdout), '1\n');
  },
};

async function main(out) {
  const log = (line) => fs.appendFileSync(out, `${JSON.stringify(line)}\n`);
  const alive = setInterval(() => {}, 1000); // what waits for a signal alone keeps no process
  for (const [id, check] of Object.entries(checks)) {
    log({ begin: id });
    try {
      await check();
      log({ id, outcome: 'pass' });
    } catch (error) {
      console.error(id, error);
      log({ id, outcome: 'fail', text: String(error).slice(0, 300) });
    }
  }
  log({ end: 'core' });
  clearInterval(alive);
  process.exit();
}

main(process.argv[2]);
