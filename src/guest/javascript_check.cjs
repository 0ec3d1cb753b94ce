'use strict';
// What would be in the way of calling main, said without running anything of the snippet: all that
// is asked is whether the engine's own parser takes it, as it is and with a line more. Part of the
// JavaScript guest (javascript.cjs), loaded only for this.

const DECLARED = "Identifier 'main' has already been declared";
// With these a program can define main where no parser sees it.
const MAY_DEFINE = new RegExp(
  [
    String.raw`\\u`, // in a name
    String.raw`\b(?:eval|Function|exports|module|arguments|global|globalThis|runInThisContext|with)\b`,
    String.raw`\.\s*(?:constructor|prototype|mainModule)\b`,
    String.raw`\brequire\s*\.\s*main\b`,
    String.raw`\bthis\s*(?:\.\s*main\b|\[)`,
    String.raw`\bmain\s*(?:\|\||&&|\?\?)?=(?![=>])`,
    String.raw`\bfunction\b[^(]{0,200}\bmain\b`, // in a block
    String.raw`[[{,]\s*main\s*[\]},=]`, // taken out of an array or an object
    String.raw`\bexport\s*\*`,
  ].join('|'),
);

function attempt(action) {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}

// The engine says where first: "FILE:LINE\n". Of what it gives up, as too deep, that is no place in
// the code.
function faultOf(error) {
  const line = error.name === 'SyntaxError' ? /^[^\n]*?:(\d+)(?::\d+)?\n/.exec(`${error.stack}`)?.[1] : undefined;
  return { message: `${error.name}: ${error.message}`, line: line === undefined ? null : Number(line) };
}

// Of a module the engine does not say where to anyone but a person who starts it.
function faultOfModule(text, file, error) {
  require('node:fs').writeFileSync(file, text);
  const { stderr } = require('node:child_process').spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  const line = /^[^\n]*:(\d+)\n/.exec(stderr)?.[1];
  const message = /^SyntaxError: .*$/m.exec(stderr)?.[0];
  return { message: message ?? `${error.name}: ${error.message}`, line: line === undefined ? null : Number(line) };
}

// Asks for the module `text`, and ends it where its first import would be looked for: it has been
// parsed then, and nothing has run. The error of the parser, or undefined.
function moduleProbe(url) {
  const { registerHooks } = require('node:module');
  const END = new Error('parsed');
  const texts = [];
  const isOurs = (name) => name?.startsWith(`${url}?`);
  registerHooks({
    resolve(specifier, context, next) {
      if (isOurs(specifier)) return { url: specifier, format: 'module', shortCircuit: true };
      if (isOurs(context.parentURL)) throw END;
      return next(specifier, context);
    },
    load(name, context, next) {
      if (!isOurs(name)) return next(name, context);
      return { format: 'module', source: texts[name.slice(url.length + 1)], shortCircuit: true };
    },
  });
  return (text) => {
    texts.push(`${text}\nimport 'isle:end';`);
    return import(`${url}?${texts.length - 1}`).then(
      () => undefined,
      (error) => (error === END || error?.cause === END ? undefined : error),
    );
  };
}

async function checkModule(text, { file, url }) {
  const probe = moduleProbe(url);
  const error = await probe(text);
  if (error) return { fault: faultOfModule(text, file, error) };
  for (const [line, message] of [
    ['let main;', DECLARED],
    ["export { default as main } from 'isle:end';", "Duplicate export of 'main'"],
    ["export { default } from 'isle:end';", "Duplicate export of 'default'"],
  ]) {
    if ((await probe(`${text}\n;${line}`))?.message === message) return { declared: true };
  }
  return { declared: false };
}

// `compile(kind, tail)`: as it would be run, with a line more at its end.
function checkFunction(kind, compile) {
  const { error } = attempt(() => compile(kind, ''));
  if (error) return { fault: faultOf(error) };
  return { declared: attempt(() => compile(kind, ';let main;')).error?.message === DECLARED };
}

// {errors: [{message, line}]}: only what is certain. `choose()`: how it is run; `place`: of a module,
// {file, url}.
async function check(text, place, choose, compile, noMain) {
  const { value: chosen, error: wrong } = attempt(choose);
  if (wrong) return { errors: [faultOf(wrong)] };
  const found = chosen.kind === 'module' ? await checkModule(text, place) : checkFunction(chosen.kind, compile);
  if (found.fault) return { errors: [found.fault] };
  if (found.declared || MAY_DEFINE.test(text)) return { errors: [] };
  return { errors: [{ message: noMain, line: null }] };
}

module.exports = { check };
