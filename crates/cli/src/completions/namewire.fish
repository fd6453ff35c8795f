# Fish completion of namewire, made by `namewire completions fish`.

function __namewire_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l program $words[1]
    type -q -- $program; or set program namewire
    command $program complete --shell fish --index (count $words) -- $words (commandline --current-token --cut-at-cursor) 2>/dev/null
end

complete --command namewire --no-files --keep-order --arguments '(__namewire_complete)'
