'use strict';
// Any value as JSON text, by the rules of docs/results.md. Part of the JavaScript guest
// (javascript.cjs), loaded before the snippet begins: nothing here calls a method that a snippet
// can reach, but for those that the contract lets it define.

const { types } = require('node:util');

const RESULT_MAX_BYTES = 8 << 20;
const DEPTH_MAX = 64; // containers around a value; more is refused by every reader behind us
const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const { from: bufferFrom, byteLength } = Buffer;
const { keys: ownKeys } = Object;
const { isArray } = Array;
const { apply } = Reflect;
const { stringify } = JSON;
const asText = String;
const ErrorClass = Error;
const { iterator: ITERATOR, asyncIterator: ASYNC_ITERATOR } = Symbol;
const objectToString = Object.prototype.toString;
const { toJSON: dateToJSON } = Date.prototype;
const { toJSON: bufferToJSON } = Buffer.prototype;
const wellFormed = uncurry(String.prototype.toWellFormed);
const slice = uncurry(String.prototype.slice);
const getTime = uncurry(Date.prototype.getTime);
const toISO = uncurry(Date.prototype.toISOString);
const mapForEach = uncurry(Map.prototype.forEach);
const setForEach = uncurry(Set.prototype.forEach);
const regExpText = uncurry(RegExp.prototype.toString);
const toBase64 = uncurry(Buffer.prototype.base64Slice);
const typedPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const getter = (prototype, name) => uncurry(Object.getOwnPropertyDescriptor(prototype, name).get);
const typedLength = getter(typedPrototype, 'length');
const viewParts = [typedPrototype, DataView.prototype].map((prototype) => ({
  buffer: getter(prototype, 'buffer'),
  offset: getter(prototype, 'byteOffset'),
  bytes: getter(prototype, 'byteLength'),
}));
const UNBOX = [
  [types.isNumberObject, uncurry(Number.prototype.valueOf)],
  [types.isStringObject, uncurry(String.prototype.valueOf)],
  [types.isBooleanObject, uncurry(Boolean.prototype.valueOf)],
  [types.isBigIntObject, uncurry(BigInt.prototype.valueOf)],
  [types.isSymbolObject, uncurry(Symbol.prototype.valueOf)],
];
const {
  isAnyArrayBuffer, isBoxedPrimitive, isDataView, isDate, isMap, isNativeError,
  isPromise, isRegExp, isSet, isTypedArray, isUint8Array, isWeakMap, isWeakSet,
} = types;

let left = RESULT_MAX_BYTES;
const around = { __proto__: null }; // containers we are in, by depth

class Unfit {
  constructor(why, keep) {
    this.why = why; // null: too large
    this.keep = keep ?? DEPTH_MAX; // steps of the path that say something
    this.path = '';
  }
}

function spend(size) {
  left -= size;
  if (left < 0) throw new Unfit(null);
}

// A JSON string literal. Surrogates that are no pair become U+FFFD.
function quote(text) {
  return stringify(wellFormed(text));
}

// Whatever was thrown, as text.
function describe(error) {
  try {
    if (error instanceof ErrorClass) return `${error.name}: ${error.message}`;
    return asText(error);
  } catch {
    return '(its text cannot be had)';
  }
}

// The value as JSON text; undefined for what JSON has no word for.
function encode(value, depth) {
  switch (typeof value) {
    case 'string':
      spend(value.length);
      return quote(value);
    case 'number':
      return value - value === 0 ? `${value}` : 'null'; // NaN, infinities
    case 'boolean':
      return value ? 'true' : 'false';
    case 'bigint': {
      const digits = `${value}`;
      spend(digits.length);
      return digits;
    }
    case 'object':
      return value === null ? 'null' : encodeObject(value, depth, true);
    default:
      return undefined;
  }
}

function encodeObject(value, depth, mayConvert) {
  if (depth === DEPTH_MAX) refuseDepth(value);
  around[depth] = value;
  spend(2);
  try {
    return convert(value, depth, mayConvert);
  } catch (error) {
    if (error instanceof Unfit) throw error;
    throw new Unfit(`cannot be converted: ${describe(error)}`);
  }
}

function refuseDepth(value) {
  around[DEPTH_MAX] = value;
  for (let end = 0; end <= DEPTH_MAX; end++) {
    for (let i = 0; i < end; i++) {
      if (around[i] === around[end]) throw new Unfit('circular reference', end);
    }
  }
  throw new Unfit(`nested more than ${DEPTH_MAX} levels deep`, 8);
}

// One member of the container at `depth`; errors get its step in front of their path.
function member(value, depth, step) {
  try {
    return encode(value, depth + 1);
  } catch (error) {
    throw at(error, depth, step);
  }
}

function at(error, depth, step) {
  if (error instanceof Unfit && depth < error.keep) error.path = pathStep(step) + error.path;
  return error;
}

function pathStep(step) {
  if (typeof step === 'number') return `[${step}]`;
  return isName(step) ? `.${step}` : `[${quote(slice(step, 0, 100))}]`;
}

function isName(text) {
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c === '_' || c === '$';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return text.length > 0;
}

function convert(value, depth, mayConvert) {
  if (isBoxedPrimitive(value)) return encode(unbox(value), depth);
  if (mayConvert) {
    const { toJSON } = value;
    if (typeof toJSON === 'function' && toJSON !== dateToJSON && toJSON !== bufferToJSON) {
      const plain = apply(toJSON, value, ['']);
      if (typeof plain !== 'object' || plain === null) return encode(plain, depth);
      return encodeObject(plain, depth, false);
    }
  }
  if (isUint8Array(value)) return encodeBytes(value, viewParts[0]);
  if (isDataView(value)) return encodeBytes(value, viewParts[1]);
  if (isAnyArrayBuffer(value)) return bytesText(bufferFrom(value));
  if (isTypedArray(value)) return encodeList(value, typedLength(value), depth);
  if (isArray(value)) return encodeList(value, value.length, depth);
  if (isDate(value)) return getTime(value) === getTime(value) ? quote(toISO(value)) : 'null';
  if (isMap(value)) return encodeMap(value, depth);
  if (isSet(value)) return encodeSet(value, depth);
  if (isNativeError(value) || value instanceof ErrorClass) {
    return `{"name":${quote(asText(value.name))},"message":${quote(asText(value.message))}}`;
  }
  if (isPromise(value)) throw new Unfit('a promise that was not awaited');
  if (isRegExp(value)) return quote(regExpText(value));
  if (isWeakMap(value) || isWeakSet(value)) return quote(apply(objectToString, value, []));
  if (typeof value.next === 'function') {
    if (typeof value[ASYNC_ITERATOR] === 'function') {
      throw new Unfit('an async iterator must be collected first');
    }
    if (typeof value[ITERATOR] === 'function') return encodeIterator(value, depth);
  }
  return encodeProperties(value, depth);
}

function unbox(value) {
  for (let i = 0; i < 5; i++) if (UNBOX[i][0](value)) return UNBOX[i][1](value);
  return undefined;
}

function encodeBytes(view, parts) {
  spend(parts.bytes(view));
  return bytesText(bufferFrom(parts.buffer(view), parts.offset(view), parts.bytes(view)));
}

function bytesText(buffer) {
  const text = toBase64(buffer);
  spend(text.length);
  return `{"$bytes":"${text}"}`;
}

function encodeList(list, length, depth) {
  if (length > left / 2) throw new Unfit(null);
  let text = '';
  for (let i = 0; i < length; i++) {
    text += `${i === 0 ? '' : ','}${member(list[i], depth, i) ?? 'null'}`;
  }
  return `[${text}]`;
}

function encodeSet(set, depth) {
  let text = '';
  let index = 0;
  setForEach(set, (item) => {
    text += `${index === 0 ? '' : ','}${member(item, depth, index) ?? 'null'}`;
    index++;
  });
  return `[${text}]`;
}

function encodeIterator(source, depth) {
  let text = '';
  for (let index = 0; ; index++) {
    const { done, value } = source.next();
    if (done) return `[${text}]`;
    spend(1);
    text += `${index === 0 ? '' : ','}${member(value, depth, index) ?? 'null'}`;
  }
}

function encodeMap(map, depth) {
  let text = '';
  const seen = { __proto__: null };
  mapForEach(map, (item, key) => {
    const name = keyText(key);
    const step = name ?? asText(typeof key);
    try {
      if (name === undefined) throw new Unfit(`a key of type ${typeof key} has no text`);
      if (seen[name]) throw new Unfit(`more than one key becomes ${quote(name)}`);
    } catch (error) {
      throw at(error, depth, step);
    }
    seen[name] = true;
    const member_text = member(item, depth, name);
    if (member_text !== undefined) text += `${text && ','}${quote(name)}:${member_text}`;
  });
  return `{${text}}`;
}

function keyText(key) {
  if (typeof key === 'string') return key;
  if (key === null || typeof key === 'number' || typeof key === 'boolean') return encode(key, 0);
  if (typeof key === 'bigint') return `${key}`;
  if (typeof key === 'object' && isDate(key)) {
    return getTime(key) === getTime(key) ? toISO(key) : 'null';
  }
  return undefined;
}

function encodeProperties(value, depth) {
  const names = ownKeys(value);
  if (names.length === 0) {
    const { toString } = value;
    if (typeof toString === 'function' && toString !== objectToString) {
      return quote(asText(apply(toString, value, [])));
    }
  }
  let text = '';
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    spend(name.length);
    const member_text = property(value, name, depth);
    if (member_text !== undefined) text += `${text && ','}${quote(name)}:${member_text}`;
  }
  return `{${text}}`;
}

function property(value, name, depth) {
  let item;
  try {
    item = value[name];
  } catch (error) {
    throw at(new Unfit(`cannot be read: ${describe(error)}`), depth, name);
  }
  return member(item, depth, name);
}

// {text} of the value, {tooLarge: bytes} or {why, path}.
function encodeResult(value) {
  left = RESULT_MAX_BYTES;
  try {
    const text = encode(value, 0) ?? 'null';
    const size = byteLength(text);
    return size > RESULT_MAX_BYTES ? { tooLarge: size } : { text };
  } catch (error) {
    if (!(error instanceof Unfit)) return { why: describe(error), path: 'result' };
    if (error.why === null) return { tooLarge: RESULT_MAX_BYTES + 1 };
    return { why: error.why, path: `result${error.path}` };
  }
}

module.exports = { encodeResult, describe, quote, RESULT_MAX_BYTES };
