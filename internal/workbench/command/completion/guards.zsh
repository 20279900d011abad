_guards() {
	local line
	local -a found
	for line in "${(@f)$("$words[1]" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	(($#found)) && _describe guards found || _files
}
compdef _guards guards
