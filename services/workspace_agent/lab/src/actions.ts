/** What the buttons do, and how they look in a row. */

import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';

import type { Button } from './protocol.js';
import type { Session } from './session.js';

/** A row of buttons for what the user can do now. `done` is called when one was pressed. */
export function buttonRow(session: Session, buttons: readonly Button[], done?: () => void): HTMLElement {
  const row = document.createElement('div');
  row.className = 'gw-Session-buttons';
  for (const button of buttons) {
    const node = document.createElement('button');
    node.className = `jp-mod-styled jp-mod-minimal ${button.act === 'keep' ? 'jp-mod-accept' : 'jp-mod-reject'}`;
    node.textContent = button.label;
    node.disabled = !button.enabled;
    node.title = button.text;
    node.dataset.act = button.act;
    node.addEventListener('click', () => {
      node.disabled = true;
      void act(session, button).finally(() => {
        node.disabled = !button.enabled;
        done?.();
      });
    });
    row.append(node);
  }
  return row;
}

async function act(session: Session, button: Button): Promise<void> {
  try {
    switch (button.act) {
      case 'keep':
        return await session.keep();
      case 'save-stop':
        return await saveAndStop(session);
      case 'stop':
        return await stop(session);
      case 'handoff':
        window.open(button.url, '_blank', 'noopener');
        return;
    }
  } catch (error) {
    await showErrorMessage(button.label, error instanceof Error ? error.message : String(error));
  }
}

async function saveAndStop(session: Session): Promise<void> {
  const { failed } = await session.save();
  const lines = failed.map(({ path, why }) => `${path}: ${why}`);
  if (!failed.length || (await confirmed('Some documents could not be saved', lines, 'Stop anyway'))) {
    await session.stop(true);
  }
}

async function stop(session: Session): Promise<void> {
  const unsaved = session.unsaved();
  if (
    !unsaved.length ||
    (await confirmed('Changes to these documents will be lost', unsaved, 'Stop without saving'))
  ) {
    await session.stop(false);
  }
}

async function confirmed(title: string, lines: readonly string[], label: string): Promise<boolean> {
  const result = await showDialog({
    title,
    body: lines.join('\n'),
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label })],
    defaultButton: 0,
  });
  return result.button.accept;
}
