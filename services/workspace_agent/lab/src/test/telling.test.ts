import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fingerprint, INPUT_GAP, STILL_HERE, shouldTell } from '../telling.js';

const told = { at: 1_000, documents: 'a.ipynb', input: 500 };

test('the first word and every change are told', () => {
  assert.ok(shouldTell(null, { documents: '', input: null, now: 0 }));
  assert.ok(shouldTell(told, { documents: '', input: 500, now: 1_001 }));
});

test('nothing is told while nothing changes, until the agent would take the page for gone', () => {
  assert.ok(!shouldTell(told, { documents: 'a.ipynb', input: 500, now: 1_000 + STILL_HERE - 1 }));
  assert.ok(shouldTell(told, { documents: 'a.ipynb', input: 500, now: 1_000 + STILL_HERE }));
});

test('a user who types is told of once a minute, and at once when they come back', () => {
  const typing = (input: number) => shouldTell(told, { documents: 'a.ipynb', input, now: input });
  assert.ok(!typing(500 + INPUT_GAP - 1));
  assert.ok(typing(500 + INPUT_GAP));
  assert.ok(shouldTell({ ...told, input: null }, { documents: 'a.ipynb', input: 1_001, now: 1_001 }));
});

test('the order of documents does not matter', () => {
  const [a, b] = [
    { path: 'a', kind: '' },
    { path: 'b', kind: '' },
  ];
  assert.equal(fingerprint([a, b]), fingerprint([b, a]));
});
