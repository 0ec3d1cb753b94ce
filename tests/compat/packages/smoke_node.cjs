'use strict';
// One telling use of each package: `node smoke_node.cjs OUT NAME...`. It runs inside a job.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const { once } = require('node:events');

// A server on the loopback; its address.
async function serve(handler, use) {
  const server = http.createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const uses = {
  axios: async () => {
    const axios = require('axios');
    const echo = (request, response) => request.pipe(response);
    await serve(echo, async (url) => {
      assert.deepEqual((await axios.post(url, { a: [1] })).data, { a: [1] });
    });
    await assert.rejects(axios.get('http://example.com', { timeout: 5000 }));
  },
  'better-sqlite3': () => {
    const Database = require('better-sqlite3');
    const db = new Database('t.db');
    assert.equal(db.prepare('select 1 + 1 as two').get().two, 2);
  },
  cheerio: () => {
    const $ = require('cheerio').load('<ul><li class="x">1</li><li>2</li></ul>');
    assert.equal($('li.x').text(), '1');
  },
  'csv-parse': () => {
    const { parse } = require('csv-parse/sync');
    assert.deepEqual(parse('a,b\n1,"x,y"\n', { columns: true }), [{ a: '1', b: 'x,y' }]);
  },
  'date-fns': () => {
    const { format, addDays } = require('date-fns');
    assert.equal(format(addDays(new Date(2024, 1, 28), 2), 'yyyy-MM-dd'), '2024-03-01');
  },
  esbuild: async () => {
    const esbuild = require('esbuild');
    const out = await esbuild.transform('const x: number = 1; export default x', { loader: 'ts', format: 'cjs' });
    assert.match(out.code, /module\.exports/);
    fs.writeFileSync('a.mjs', 'export const a = 1;');
    fs.writeFileSync('b.mjs', 'import { a } from "./a.mjs"; console.log(a);');
    await esbuild.build({ entryPoints: ['b.mjs'], bundle: true, minify: true, outfile: 'out.js' });
    assert.match(fs.readFileSync('out.js', 'utf8'), /console\.log/);
  },
  express: async () => {
    const express = require('express');
    const app = express().use(express.json());
    app.post('/double/:n', (request, response) => response.json({ n: request.params.n * 2, body: request.body }));
    await serve(app, async (url) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${url}/double/4`, { method: 'POST', body: '{"a":1}', headers });
      assert.deepEqual(await answer.json(), { n: 8, body: { a: 1 } });
    });
  },
  lodash: () => {
    const _ = require('lodash');
    assert.deepEqual(_.groupBy([1.2, 1.8, 2.1], Math.floor), { 1: [1.2, 1.8], 2: [2.1] });
  },
  marked: () => {
    const { marked } = require('marked'); // NODE_PATH is for require() only
    assert.equal(marked.parse('# a').trim(), '<h1>a</h1>');
  },
  nanoid: () => {
    const { nanoid } = require('nanoid');
    assert.equal(nanoid().length, 21);
  },
  papaparse: () => {
    const Papa = require('papaparse');
    assert.deepEqual(Papa.parse('a,b\n1,2', { header: true }).data, [{ a: '1', b: '2' }]);
  },
  'pdf-lib': async () => {
    const { PDFDocument } = require('pdf-lib');
    const document = await PDFDocument.create();
    document.addPage().drawText('hello');
    assert.equal((await PDFDocument.load(await document.save())).getPageCount(), 1);
  },
  sharp: async () => {
    const sharp = require('sharp');
    const image = sharp({ create: { width: 300, height: 200, channels: 3, background: '#f00' } });
    await image.resize(30).png().toFile('s.png');
    assert.equal((await sharp('s.png').metadata()).height, 20);
  },
  typescript: () => {
    const { execFileSync } = require('node:child_process');
    fs.writeFileSync('t.ts', 'const a: number = 1;\nexport const b: string = String(a);\n');
    execFileSync('tsc', ['--target', 'es2022', '--module', 'nodenext', '--moduleResolution', 'nodenext', 't.ts']);
    assert.match(fs.readFileSync('t.js', 'utf8'), /String\(a\)/);
    fs.writeFileSync('u.ts', 'const a: number = "x";\n');
    assert.throws(() => execFileSync('tsc', ['--noEmit', 'u.ts'], { stdio: 'pipe' }), /Command failed/);
  },
  uuid: () => {
    const { v4, v7, validate } = require('uuid');
    assert.ok(validate(v4()) && validate(v7()));
  },
  ws: async () => {
    const { WebSocketServer, WebSocket } = require('ws');
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(server, 'listening');
    server.on('connection', (socket) => socket.on('message', (data) => socket.send(`<${data}>`)));
    const client = new WebSocket(`ws://127.0.0.1:${server.address().port}`);
    await once(client, 'open');
    client.send('hi');
    const [answer] = await once(client, 'message');
    assert.equal(String(answer), '<hi>');
    client.terminate();
    server.close();
  },
  xlsx: () => {
    const XLSX = require('xlsx');
    const book = XLSX.utils.book_new();
    XLSX.utils.book_append_sheet(book, XLSX.utils.aoa_to_sheet([['a', 1]]), 'S');
    XLSX.writeFile(book, 'x.xlsx');
    assert.equal(XLSX.readFile('x.xlsx').Sheets.S.B1.v, 1);
  },
  zod: () => {
    const { z } = require('zod');
    const shape = z.object({ a: z.coerce.number(), b: z.string().optional() });
    assert.deepEqual(shape.parse({ a: '3' }), { a: 3 });
    assert.equal(shape.safeParse({ a: 'x' }).success, false);
  },
};

async function main(out, names) {
  const log = (line) => fs.appendFileSync(out, JSON.stringify(line) + '\n');
  for (const id of names) {
    log({ begin: id });
    const begun = Date.now();
    try {
      await uses[id]();
      log({ id, outcome: 'pass', ms: Date.now() - begun });
    } catch (error) {
      console.error(error);
      log({ id, outcome: 'fail', text: String(error).slice(0, 300), ms: Date.now() - begun });
    }
  }
  log({ end: 'smoke' });
}

main(...[process.argv[2], process.argv.slice(3)]);
