#compdef namewire
# Zsh completion of namewire, made by `namewire completions zsh`.

_namewire() {
    local program=${words[1]}
    local -a found
    (( $+commands[$program] )) || [[ -x $program ]] || program=namewire
    found=("${(@f)$($program complete --shell zsh --index $((CURRENT - 1)) -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    (( $#found )) || return 1
    # Folders and "--option=" go on without a space.
    local -a more=(${(M)found:#*[/=]:*})
    if [[ $#found -eq 1 && $#more -eq 1 ]]; then
        _describe -V namewire found -S ''
    else
        _describe -V namewire found
    fi
}

if [[ "$funcstack[1]" == "_namewire" ]]; then
    _namewire "$@"
else
    compdef _namewire namewire
fi
